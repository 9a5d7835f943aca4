// Does every operation with the client that hey-api makes; the schemas that its zod plugin makes check both ways.
import * as api from "./hey/sdk.gen";
import { client } from "./hey/client.gen";
import { zPostEvent } from "./hey/zod.gen";

declare const process: { env: Record<string, string> };

async function ok<T>(answer: Promise<{ data?: T; error?: unknown }>): Promise<T> {
  const { data, error } = await answer;
  if (error !== undefined) throw error;
  return data as T;
}

async function main(): Promise<void> {
  client.setConfig({ baseUrl: process.env.BASE, auth: process.env.KEY });
  const post = await ok(api.createPost({ body: { title: "Käse", content: "Words.", tags: ["a", "b"] } }));
  const path = { post: post.id };
  const bySlug = { post: post.slug };
  await ok(api.getPost({ path }));
  await ok(api.getPostBySlug({ path: bySlug }));
  await ok(api.changePost({ path, body: { status: "published", excerpt: null } }));
  await ok(api.changePostBySlug({ path: bySlug, body: { excerpt: "Short." } }));
  const whole = { title: "Käse", content: "Words.", tags: ["a", "b"], slug: post.slug, excerpt: "Short." };
  await ok(api.replacePost({ path, body: whole }));
  const proposal = (await ok(api.proposeChange({ path, body: { excerpt: "One." } }))).id;
  await ok(api.listAllProposals());
  await ok(api.listProposals({ path }));
  await ok(api.getProposal({ path: { ...path, proposal } }));
  await ok(api.applyProposal({ path: { ...path, proposal } }));
  const other = { path: { ...bySlug, proposal: (await ok(api.proposeChangeBySlug({ path: bySlug, body: { excerpt: "Two." } }))).id } };
  await ok(api.listProposalsBySlug({ path: bySlug }));
  await ok(api.getProposalBySlug(other));
  await ok(api.deleteProposalBySlug(other));
  const third = (await ok(api.proposeChange({ path, body: { excerpt: "Three." } }))).id;
  await ok(api.deleteProposal({ path: { ...path, proposal: third } }));
  const last = (await ok(api.proposeChangeBySlug({ path: bySlug, body: { excerpt: "Four." } }))).id;
  await ok(api.applyProposalBySlug({ path: { ...bySlug, proposal: last } }));
  if ((await ok(api.getKey())).scope !== "full") throw new Error("another scope");
  await ok(api.putPost({ path: { post: "other" }, body: { title: "Other", content: "Words.", status: "archived" } }));
  const [first] = await ok(api.listPosts({ query: { limit: 1, status: "published", tag: "a", before: "99" } }));
  if (first.published_at === undefined) throw new Error("no published_at");
  await ok(api.listTags({ query: { limit: 9 } }));
  await ok(api.getTag({ path: { tag: "a" } }));
  await ok(api.changeTag({ path: { tag: "a" }, body: { name: "c" } }));
  await ok(api.deleteTag({ path: { tag: "b" } }));
  const [revision] = await ok(api.listRevisions({ path }));
  const ofPost = { path: { ...path, revision: revision.revision } };
  const ofSlug = { path: { ...bySlug, revision: revision.revision } };
  await ok(api.listRevisionsBySlug({ path: bySlug, query: { limit: 1 } }));
  await ok(api.getRevision(ofPost));
  await ok(api.getRevisionBySlug(ofSlug));
  await ok(api.restoreRevision(ofPost));
  await ok(api.restoreRevisionBySlug(ofSlug));
  await ok(api.deletePost({ path }));
  await ok(api.listTrash());
  await ok(api.getTrashedPost({ path }));
  await ok(api.restoreTrashedPost({ path }));
  await ok(api.deletePostBySlug({ path: { post: "other" } }));
  await ok(api.deleteTrashedPost({ path: { post: "2" } }));
  const { id, secret } = await ok(api.createWebhook({ body: { url: "http://127.0.0.1:1/" } }));
  if (!secret.startsWith("whsec_")) throw new Error(secret);
  const webhook = { webhook_id: id };
  await ok(api.listWebhooks());
  await ok(api.getWebhook({ path: webhook }));
  await ok(api.changeWebhook({ path: webhook, body: { events: ["post.published", "ping"] } }));
  const delivery = await ok(api.pingWebhook({ path: webhook }));
  await ok(api.listDeliveries({ path: webhook }));
  await ok(api.redeliver({ path: { ...webhook, delivery_id: delivery.id } }));
  await ok(api.deleteWebhook({ path: webhook }));
  const dot = "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7";
  const file = await (await fetch(`data:image/gif;base64,${dot}`)).blob();
  // The zod plugin takes a file for text.
  const image = { image_id: (await ok(api.createImage({ body: { file }, requestValidator: undefined }))).id };
  await ok(api.getImage({ path: image }));
  await ok(api.listImages({ query: { limit: 1 } }));
  await ok(api.deleteImage({ path: image }));
  const { content, ...told } = post;
  zPostEvent.parse({ type: "post.created", timestamp: post.created_at, data: { post: told } });
}

main();
