// Says what the catalogs lack: texts that were not extracted or translated, and translations that do not fit.
import process from "node:process";

import { getCatalogs } from "@lingui/cli/api";
import { getConfig } from "@lingui/conf";

const config = getConfig();
const faults = [];
/** Texts with the translation and the catalog that they were first met in, by language and id. */
const known = new Map();

/** The placeholders, tags and plurals of a text, which a translation keeps. */
function parts(text) {
  return [...new Set(text.match(/\{\w+(?=[,}])|<\/?\w+\/?>/g))].sort().join(" ");
}

function check(name, locale, id, { message = id, translation, obsolete }) {
  if (obsolete) return [];
  if (translation === "") return [`${name}: not translated: ${message}`];
  const key = `${locale} ${id}`;
  const first = known.get(key) ?? { name, translation };
  known.set(key, first);
  return [
    ...(parts(message) === parts(translation) ? [] : [`${name}: other placeholders or tags: ${message} → ${translation}`]),
    ...(first.translation === translation ? [] : [`${name}: ${first.name} translates otherwise: ${message} → ${translation}`]),
  ];
}

for (const catalog of await getCatalogs(config)) {
  const found = await catalog.collect() ?? {};
  for (const locale of config.locales.filter((one) => one !== config.sourceLocale)) {
    const name = catalog.getFilename(locale).slice(config.rootDir.length + 1);
    const held = await catalog.read(locale) ?? {};
    for (const id of Object.keys(found)) if (!(id in held)) faults.push(`${name}: not extracted: ${found[id].message ?? id}`);
    for (const id of Object.keys(held)) if (!(id in found)) faults.push(`${name}: no longer used: ${held[id].message ?? id}`);
    for (const [id, entry] of Object.entries(held)) faults.push(...check(name, locale, id, entry));
  }
}
if (faults.length > 0) {
  process.stderr.write(`${faults.join("\n")}\nRun \`npm run extract\`, and translate what is empty in src/locales.\n`);
  process.exitCode = 1;
}
