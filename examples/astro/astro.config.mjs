import { defineConfig } from "astro/config";

export default defineConfig({
  site: process.env.SITE_URL ?? "https://blog.example.org",
  trailingSlash: "always",
  image: { remotePatterns: [{ protocol: "https" }, { protocol: "http" }] }, // Images in posts can come from anywhere.
});
