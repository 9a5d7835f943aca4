import { absolute, posts, title } from "../posts.js";

const escape = (text) => text.replace(/[&<>]/g, (sign) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[sign]);

const entry = (post, address) => `<entry>
<title>${escape(post.title)}</title>
<id>${address}</id>
<link href="${address}"/>
<published>${post.date}</published>
<updated>${post.updated_at}</updated>
<content type="html">${escape(absolute(post.html, address))}</content>
</entry>`;

export function GET({ site }) {
  return new Response(`<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom">
<title>${escape(title)}</title>
<id>${site}</id>
<link href="${site}"/>
<link rel="self" href="${site}feed.xml"/>
<updated>${posts[0]?.date ?? "2000-01-01T00:00:00Z"}</updated>
<author><name>${escape(title)}</name></author>
${posts.slice(0, 20).map((post) => entry(post, `${site}posts/${post.slug}/`)).join("\n")}
</feed>
`);
}
