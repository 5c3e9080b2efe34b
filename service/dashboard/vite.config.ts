import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

/** Where a service runs during development; its allowed hosts must include this server's. */
const SERVICE = "http://127.0.0.1:8765";

export default defineConfig({
  plugins: [react()],
  build: {
    outDir: "dist",
    emptyOutDir: true,
    sourcemap: false,
    assetsInlineLimit: 0,
    // The explorer of the REST API is a page of its own: nobody else loads Swagger UI.
    rolldownOptions: { input: ["index.html", "docs.html"] },
    chunkSizeWarningLimit: 1600,
  },
  server: { proxy: { "/api": { target: SERVICE, changeOrigin: true } } },
  test: { include: ["src/**/*.test.ts"], environment: "node" },
});
