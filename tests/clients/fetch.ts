// Does every operation with openapi-fetch, by the types that openapi-typescript makes.
import createClient from "openapi-fetch";
import type { components, paths } from "./types";

declare const process: { env: Record<string, string> };

async function ok<T>(answer: Promise<{ data?: T; error?: unknown }>): Promise<T> {
  const { data, error } = await answer;
  if (error !== undefined) throw error;
  return data as T;
}

async function main(): Promise<void> {
  const headers = { Authorization: `Bearer ${process.env.KEY}` };
  const { DELETE, GET, PATCH, POST, PUT } = createClient<paths>({ baseUrl: process.env.BASE, headers });
  const body: components["schemas"]["NewPost"] = { title: "Käse", content: "Words.", tags: ["a", "b"] };
  const post = await ok(POST("/v1/posts", { body }));
  const path = { post: post.id };
  const bySlug = { post: post.slug };
  await ok(GET("/v1/posts/{post}", { params: { path } }));
  await ok(GET("/v1/posts/by-slug/{post}", { params: { path: bySlug } }));
  const status: components["schemas"]["Status"] = "published";
  await ok(PATCH("/v1/posts/{post}", { params: { path }, body: { status, excerpt: null } }));
  const got = await ok(PATCH("/v1/posts/by-slug/{post}", { params: { path: bySlug }, body: { excerpt: "Short." } }));
  await ok(PUT("/v1/posts/by-slug/{post}", { params: { path: bySlug }, body: { ...got, content: "More." } }));
  const whole = { title: "Käse", content: "Words.", tags: ["a", "b"], slug: post.slug, excerpt: "Short." };
  await ok(PUT("/v1/posts/{post}", { params: { path }, body: whole }));
  const proposal = async (excerpt: string) =>
    (await ok(POST("/v1/posts/{post}/proposals", { params: { path }, body: { excerpt } }))).id;
  const first = { params: { path: { ...path, proposal: await proposal("One.") } } };
  await ok(GET("/v1/proposals"));
  await ok(GET("/v1/posts/{post}/proposals", { params: { path } }));
  await ok(GET("/v1/posts/{post}/proposals/{proposal}", first));
  await ok(POST("/v1/posts/{post}/proposals/{proposal}/apply", first));
  const second = { params: { path: { ...path, proposal: await proposal("Two.") } } };
  await ok(DELETE("/v1/posts/{post}/proposals/{proposal}", second));
  const proposalBySlug = async (excerpt: string) => {
    const { id } = await ok(POST("/v1/posts/by-slug/{post}/proposals", { params: { path: bySlug }, body: { excerpt } }));
    return { params: { path: { ...bySlug, proposal: id } } };
  };
  const third = await proposalBySlug("Three.");
  await ok(GET("/v1/posts/by-slug/{post}/proposals", { params: { path: bySlug } }));
  await ok(GET("/v1/posts/by-slug/{post}/proposals/{proposal}", third));
  await ok(POST("/v1/posts/by-slug/{post}/proposals/{proposal}/apply", third));
  await ok(DELETE("/v1/posts/by-slug/{post}/proposals/{proposal}", await proposalBySlug("Four.")));
  if ((await ok(GET("/v1/key"))).scope !== "full") throw new Error("another scope");
  const other = { params: { path: { post: "other" } } };
  await ok(PUT("/v1/posts/by-slug/{post}", { ...other, body: { title: "Other", content: "Words." } }));
  const query = { limit: 1, status, tag: "a", before: "99", fields: ["slug", "tags"] as ("slug" | "tags")[] };
  const [listed] = await ok(GET("/v1/posts", { params: { query } }));
  if (listed.tags?.length !== 2) throw new Error("no tags");
  await ok(GET("/v1/tags", { params: { query: { limit: 9 } } }));
  await ok(GET("/v1/tags/{tag}", { params: { path: { tag: "a" } } }));
  await ok(PATCH("/v1/tags/{tag}", { params: { path: { tag: "a" } }, body: { name: "c" } }));
  await ok(DELETE("/v1/tags/{tag}", { params: { path: { tag: "b" } } }));
  await ok(GET("/v1/posts/{post}/revisions", { params: { path } }));
  await ok(GET("/v1/posts/by-slug/{post}/revisions", { params: { path: bySlug } }));
  const ofPost = { params: { path: { ...path, revision: "1" } } };
  const ofSlug = { params: { path: { ...bySlug, revision: "1" } } };
  await ok(GET("/v1/posts/{post}/revisions/{revision}", ofPost));
  await ok(GET("/v1/posts/by-slug/{post}/revisions/{revision}", ofSlug));
  await ok(POST("/v1/posts/{post}/revisions/{revision}/restore", ofPost));
  await ok(POST("/v1/posts/by-slug/{post}/revisions/{revision}/restore", ofSlug));
  await ok(DELETE("/v1/posts/{post}", { params: { path } }));
  await ok(GET("/v1/trash"));
  await ok(GET("/v1/trash/{post}", { params: { path } }));
  await ok(POST("/v1/trash/{post}/restore", { params: { path } }));
  await ok(DELETE("/v1/posts/by-slug/{post}", other));
  await ok(DELETE("/v1/trash/{post}", { params: { path: { post: "2" } } }));
  const created = await ok(POST("/v1/webhooks", { body: { url: "http://127.0.0.1:1/" } }));
  const params = { path: { webhook_id: created.id } };
  await ok(GET("/v1/webhooks"));
  await ok(GET("/v1/webhooks/{webhook_id}", { params }));
  const events: components["schemas"]["EventType"][] = ["post.published", "ping"];
  await ok(PATCH("/v1/webhooks/{webhook_id}", { params, body: { events } }));
  const delivery = await ok(POST("/v1/webhooks/{webhook_id}/ping", { params }));
  await ok(GET("/v1/webhooks/{webhook_id}/deliveries", { params }));
  const again = { path: { ...params.path, delivery_id: delivery.id } };
  await ok(POST("/v1/webhooks/{webhook_id}/deliveries/{delivery_id}/redeliver", { params: again }));
  await ok(DELETE("/v1/webhooks/{webhook_id}", { params }));
  const dot = "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7";
  const file = await (await fetch(`data:image/gif;base64,${dot}`)).blob();
  const bodySerializer = () => {
    const form = new FormData();
    form.append("file", file, "dot.gif");
    return form;
  };
  const uploaded = await ok(POST("/v1/images", { body: { file: "" }, bodySerializer }));
  const image = { params: { path: { image_id: uploaded.id } } };
  await ok(GET("/v1/images/{image_id}", image));
  await ok(GET("/v1/images", { params: { query: { limit: 1 } } }));
  await ok(DELETE("/v1/images/{image_id}", image));
}

main();
