import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig, type ProxyOptions } from "vite";

// While the page is worked on, `tine serve` answers what the page asks.
const server = process.env.TINE_SERVER ?? "http://127.0.0.1:8000";
const toServer: ProxyOptions = {
  target: server,
  changeOrigin: true,
  configure: (proxy) => proxy.on("proxyReq", (request) => request.removeHeader("origin")),
};
const proxy = { "/api": toServer, "/docs": toServer, "/mcp": toServer };

export default defineConfig({
  plugins: [svelte()],
  // Small files stay files: the policy of the page allows no `data:` scripts or styles.
  build: { target: "es2022", assetsInlineLimit: 0, modulePreload: { polyfill: false } },
  server: { proxy },
  preview: { proxy },
});
