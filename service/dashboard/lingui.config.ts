import { readdirSync } from "node:fs";

import { defineConfig } from "@lingui/cli";
import { formatter } from "@lingui/format-po";

/** Folders of `src` that hold no texts. */
const SILENT = ["locales", "styles"];
const folders = readdirSync(new URL("src", import.meta.url), { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && !SILENT.includes(entry.name))
  .map(({ name }) => name);
const tests = ["**/*.test.ts"];

/** A catalog for each folder, so that whoever works on different folders does not meet. */
export default defineConfig({
  sourceLocale: "en",
  locales: ["zh-CN"],
  // Texts at the top of a module wait for the language, which this module chooses and loads.
  runtimeConfigModule: { i18n: ["/src/lib/i18n.ts", "i18n"], Trans: ["@lingui/react", "Trans"] },
  orderBy: "message",
  format: formatter({ origins: false, printLinguiId: false }),
  catalogs: [
    { path: "<rootDir>/src/locales/{locale}/main", include: ["<rootDir>/src/*.ts", "<rootDir>/src/*.tsx"] },
    ...folders.map((folder) => (
      { path: `<rootDir>/src/locales/{locale}/${folder}`, include: [`<rootDir>/src/${folder}/`], exclude: tests }
    )),
  ],
});
