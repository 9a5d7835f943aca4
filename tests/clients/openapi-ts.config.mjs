export default {
  input: "openapi.json",
  output: "hey",
  plugins: ["@hey-api/client-fetch", "zod", { name: "@hey-api/sdk", validator: "zod" }],
};
