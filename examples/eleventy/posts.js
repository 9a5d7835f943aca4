const { BLOG_URL, BLOG_KEY, BLOG_DRAFTS } = process.env;

/** Read the posts page by page, latest first; with BLOG_DRAFTS, also drafts and scheduled posts. */
export async function readPosts() {
  const posts = [];
  let url = `${BLOG_URL}/v1/posts${BLOG_DRAFTS ? "" : "?status=published"}`;
  while (url) {
    const answer = await fetch(url, { headers: { Authorization: `Bearer ${BLOG_KEY}` } });
    if (!answer.ok) throw new Error(`${url}: ${await answer.text()}`);
    posts.push(...(await answer.json()));
    const next = answer.headers.get("Link")?.match(/<(.*)>; rel="next"/)?.[1];
    url = next && `${BLOG_URL}${next.slice(next.indexOf("/v1/"))}`;
  }
  const date = (post) => post.published_at ?? post.updated_at;
  return posts
    .filter((post) => post.status !== "archived")
    .map((post) => ({ ...post, date: date(post), content: withoutTitle(post) }))
    .sort((one, other) => Date.parse(other.date) - Date.parse(one.date));
}

/** Remove the first heading of the content if it is the title, which the page already shows. */
function withoutTitle({ title, content }) {
  const heading = content.match(/^\s*# +(.*?)(?: +#+)? *\r?(?:\n|$)/);
  return heading?.[1] === title ? content.slice(heading[0].length) : content;
}

/** Make the addresses in a text absolute, because feed readers show it elsewhere. */
export function absolute(html, base) {
  return html.replace(/<[a-z](?:"[^"]*"|[^">])*>/gi, (tag) =>
    tag.replace(/(\s(?:href|src|poster)=")([^"]*)/g, (all, start, address) =>
      URL.canParse(address, base) ? start + new URL(address, base) : all,
    ),
  );
}
