import { gzipSync } from "node:zlib";

import { expect, it } from "vitest";

import { firstView } from "./vite.plugins.ts";

const chunk = (code: string, imports: string[], styles: string[] = []) => (
  { type: "chunk" as const, code, imports, viteMetadata: { importedCss: new Set(styles) } }
);
const weight = (code: string) => gzipSync(code, { level: 9 }).length;

it("counts what an entry imports once, with its styles, and nothing that is loaded later", () => {
  const bundle = {
    "index.js": chunk("entry", ["shared.js", "home.js"], ["home.css"]),
    "home.js": chunk("the home page, which is longer", ["shared.js"]),
    "shared.js": chunk("shared", ["https://elsewhere"]),
    "job.js": chunk("later", ["shared.js"], ["job.css"]),
    "home.css": { type: "asset" as const, source: "a {}" },
    "job.css": { type: "asset" as const, source: "b {}" },
  };
  const found = firstView(bundle, "index.js");
  expect(found[0]).toEqual(["home.js", weight("the home page, which is longer")]);
  expect(found.map(([name]) => name).sort()).toEqual(["home.css", "home.js", "index.js", "shared.js"]);
  expect(Object.fromEntries(found)["home.css"]).toBe(weight("a {}"));
});
