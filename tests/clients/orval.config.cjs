module.exports = { blog: { input: "openapi.json", output: { target: "orval/blog.ts", schemas: "orval/model", client: "fetch" } } };
