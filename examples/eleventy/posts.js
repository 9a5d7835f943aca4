import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname } from "node:path";

const CACHE = ".cache/posts.json"; // the posts of the last build
const { BLOG_URL, BLOG_KEY, BLOG_DRAFTS } = process.env;

/** Read the posts, latest first; with BLOG_DRAFTS, also drafts and scheduled posts. */
export async function readPosts() {
  const date = (post) => post.published_at ?? post.updated_at;
  return (await readChanged())
    .filter((post) => post.status !== "archived")
    .map((post) => ({ ...post, date: date(post), content: withoutTitle(post) }))
    .sort((one, other) => Date.parse(other.date) - Date.parse(one.date));
}

/** Read the posts that changed since the last build, and the ids of all; take the others from the cache. */
async function readChanged() {
  const status = BLOG_DRAFTS ? "" : "&status=published";
  const source = `${BLOG_URL} ${status}`;
  const cache = JSON.parse(await readFile(CACHE, "utf8").catch(() => "{}"));
  const known = new Map(cache.source === source ? cache.posts.map((post) => [post.id, post]) : []);
  const since = [...known.values()].map((post) => post.updated_at).sort().at(-1) ?? "1970-01-01";
  const changed = await list(`updated_after=${since}${status}`);
  for (const post of changed) known.set(post.id, post);
  const ids = await list(`fields=updated_at&limit=1000${status}`);
  if (ids.some(({ id, updated_at }) => known.get(id)?.updated_at > updated_at)) {
    await rm(CACHE); // The service was restored from a backup.
    return readChanged();
  }
  const posts = ids.map(({ id }) => known.get(id)).filter(Boolean); // One published just now is in the next build.
  console.log(`Read ${changed.length} posts; ${posts.length} are in the site, the others from ${CACHE}.`);
  await mkdir(dirname(CACHE), { recursive: true });
  await writeFile(CACHE, JSON.stringify({ source, posts }));
  return posts;
}

/** Read a list of posts, page by page. */
async function list(query) {
  const posts = [];
  let url = `${BLOG_URL}/v1/posts?${query}`;
  while (url) {
    const answer = await fetch(url, { headers: { Authorization: `Bearer ${BLOG_KEY}` } });
    if (!answer.ok) throw new Error(`${url}: ${answer.status} ${await answer.text()}`);
    posts.push(...(await answer.json()));
    const next = answer.headers.get("Link")?.match(/<(.*)>; rel="next"/)?.[1];
    url = next && `${BLOG_URL}${next.slice(next.indexOf("/v1/"))}`;
  }
  return posts;
}

/** Remove the first heading of the content if it is the title, which the page already shows. */
function withoutTitle({ title, content }) {
  const heading = content.match(/^\s*# +(.*?)(?: +#+)? *\r?(?:\n|$)/);
  return heading?.[1] === title ? content.slice(heading[0].length) : content;
}

/** Make the URLs in HTML absolute, because feed readers show it elsewhere. */
export function absolute(html, base) {
  return html.replace(/<[a-z](?:"[^"]*"|[^">])*>/gi, (tag) =>
    tag.replace(/(\s(?:href|src|poster)=")([^"]*)/g, (all, start, address) =>
      URL.canParse(address, base) ? start + new URL(address, base) : all,
    ),
  );
}
