import { createMarkdownProcessor } from "@astrojs/markdown-remark";

const { BLOG_URL, BLOG_KEY, BLOG_DRAFTS } = process.env;
const markdown = await createMarkdownProcessor({ syntaxHighlight: false });

export const title = "My blog";
export const posts = await readPosts();
export const tags = tagsOf(posts);

/** Read the posts page by page, latest first; with BLOG_DRAFTS, also drafts and scheduled posts. */
async function readPosts() {
  const posts = [];
  let url = `${BLOG_URL}/v1/posts${BLOG_DRAFTS ? "" : "?status=published"}`;
  while (url) {
    const answer = await fetch(url, { headers: { Authorization: `Bearer ${BLOG_KEY}` } });
    if (!answer.ok) throw new Error(`${url}: ${answer.status} ${await answer.text()}`);
    for (const post of await answer.json()) {
      if (post.status === "archived") continue;
      const { code } = await markdown.render(withoutTitle(post));
      posts.push({ ...post, date: post.published_at ?? post.updated_at, html: code, tags: post.tags ?? [] });
    }
    const next = answer.headers.get("Link")?.match(/<(.*)>; rel="next"/)?.[1];
    url = next && `${BLOG_URL}${next.slice(next.indexOf("/v1/"))}`;
  }
  return posts.sort((one, other) => Date.parse(other.date) - Date.parse(one.date));
}

/** Return the content without its first heading if that is the title, which the page already shows. */
function withoutTitle({ title, content }) {
  const heading = content.match(/^\s*# +(.*?)(?: +#+)? *\r?(?:\n|$)/);
  return heading?.[1] === title ? content.slice(heading[0].length) : content;
}

/** Return the tags by their slugs: tags that differ only in punctuation share a page. */
function tagsOf(posts) {
  const tags = new Map();
  for (const post of posts) {
    for (const name of post.tags) {
      const tag = tags.get(slugOf(name)) ?? { name, posts: [] };
      tags.set(slugOf(name), tag);
      if (tag.posts.at(-1) !== post) tag.posts.push(post);
    }
  }
  return tags;
}

/** Return a tag as part of an address, keeping letters of all scripts. */
export function slugOf(name) {
  return name.toLowerCase().match(/[\p{L}\p{M}\p{N}]+/gu)?.join("-") ?? "other";
}

/** Make the addresses in a text absolute, because feed readers show it elsewhere. */
export function absolute(html, base) {
  return html.replace(/<[a-z](?:"[^"]*"|[^">])*>/gi, (tag) =>
    tag.replace(/(\s(?:href|src|poster)=")([^"]*)/g, (all, start, address) =>
      URL.canParse(address, base) ? start + new URL(address, base) : all,
    ),
  );
}
