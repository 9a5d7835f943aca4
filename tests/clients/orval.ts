// Writes a post, and changes it as one got it, with the client that orval makes.
import * as api from "./orval/blog";

declare const process: { env: Record<string, string> };

// The client sends to the address of the page, and names no type for a body that can be JSON or a file.
const send = globalThis.fetch;
globalThis.fetch = (path, options) => {
  const headers = { Authorization: `Bearer ${process.env.KEY}`, "Content-Type": "application/json" };
  return send(process.env.BASE + path, { ...options, headers });
};

function ok<A extends { status: number; data: unknown }, S extends A["status"]>(answer: A, status: S) {
  if (answer.status !== status) throw new Error(JSON.stringify(answer.data));
  return answer.data as Extract<A, { status: S }>["data"];
}

async function main(): Promise<void> {
  const body = { title: "Käse", content: "Words.", tags: ["a"], excerpt: null };
  const { id } = ok(await api.createPost(body), 201);
  const later = { ...body, status: "scheduled", published_at: "2099-01-01T08:00:00+0100" } as const;
  if (ok(await api.putPost("later", later), 201).published_at !== "2099-01-01T07:00:00Z") throw new Error("another time");
  const got = ok(await api.getPost(id), 200);
  if (typeof got === "string") throw new Error("a file");
  got.content += " More.";
  const put = ok(await api.replacePost(got.id, got), 200);
  if (put.content !== "Words. More.") throw new Error(put.content);
  const [newest] = ok(await api.listPosts({ limit: 1, fields: ["slug"] }), 200);
  if (newest.slug !== "later" || newest.content !== undefined) throw new Error(newest.slug);
  if (ok(await api.listTags(), 200)[0].posts !== 2) throw new Error("another number");
  ok(await api.deletePost(id), 204);
}

main();
