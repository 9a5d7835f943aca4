import { eleventyImageTransformPlugin } from "@11ty/eleventy-img";
import markdownIt from "markdown-it";
import footnote from "markdown-it-footnote";
import { absolute, readPosts } from "./posts.js";

/** Return a tag as part of a URL, keeping letters of all scripts. */
const slugOf = (name) => name.toLowerCase().match(/[\p{L}\p{M}\p{N}]+/gu)?.join("-") ?? "other";

const LOCAL_IMAGE = /<img\b(?!(?:"[^"]*"|[^">])*\ssrc="https?:)/gi;

export default async function (config) {
  const posts = await readPosts();
  const tags = new Map(); // by slug: tags that differ only in punctuation share a page
  for (const post of posts) {
    for (const name of post.tags ?? []) {
      const tag = tags.get(slugOf(name)) ?? { name, posts: [] };
      tags.set(slugOf(name), tag);
      if (tag.posts.at(-1) !== post) tag.posts.push(post);
    }
  }
  const markdown = markdownIt({ html: true }).use(footnote);
  config.addGlobalData("posts", posts);
  const moved = posts.flatMap(({ slug, former_slugs = [] }) => former_slugs.map((from) => ({ from, to: slug })));
  config.addGlobalData("moved", moved);
  config.addGlobalData("taggedPosts", [...tags.values()]);
  config.addGlobalData("site", { title: "My blog", url: process.env.SITE_URL ?? "https://blog.example.org" });
  config.addFilter("markdown", (text) => markdown.render(text));
  config.addFilter("absolute", absolute);
  // The build cannot read images that belong to the site itself, so they stay as they are.
  config.addFilter("remoteImagesOnly", (html) => html.replace(LOCAL_IMAGE, "<img eleventy:ignore"));
  config.addFilter("slugOf", slugOf);
  config.addFilter("day", (time) => time.slice(0, 10));
  config.addPassthroughCopy("style.css");
  config.addPlugin(eleventyImageTransformPlugin, {
    formats: ["webp"],
    widths: [800],
    sharpOptions: { animated: true },
    failOnError: false, // if an image is gone, the original link stays
    htmlOptions: { imgAttributes: { loading: "lazy", decoding: "async" } },
  });
}
