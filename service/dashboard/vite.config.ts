import { lingui } from "@lingui/vite-plugin";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

import { lightFirstView, messages, packed } from "./vite.plugins.ts";

/** Where a service runs during development; its allowed hosts must include this server's. */
const SERVICE = "http://127.0.0.1:8765";

/** What the first view may weigh, in bytes at gzip -9. */
const FIRST_VIEW_BYTES = 150_000;

/** The entries with what the build adds to them, and what the explorer of the REST API alone needs. */
const OWN = /^\0|\.html|swagger-ui|explorer\.|src\/main\.tsx/;

export default defineConfig({
  plugins: [messages(), lingui({ failOnCompileError: true }), react(), lightFirstView("index.html", FIRST_VIEW_BYTES), packed()],
  build: {
    outDir: "dist",
    emptyOutDir: true,
    sourcemap: false,
    assetsInlineLimit: 0,
    // The explorer of the REST API is a page of its own: nobody else loads Swagger UI.
    rolldownOptions: {
      input: ["index.html", "docs.html"],
      // What the first page needs is one file: the wait for a language would have it split into dozens.
      output: { codeSplitting: { groups: [{ name: "first", tags: ["$initial"], test: (id) => !OWN.test(id) }] } },
    },
    chunkSizeWarningLimit: 1600,
  },
  server: { proxy: { "/api": { target: SERVICE, changeOrigin: true } } },
  test: { include: ["src/**/*.test.ts", "*.test.ts"], environment: "node", setupFiles: ["src/lib/i18n.setup.ts"] },
});
