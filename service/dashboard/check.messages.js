// Says what the dashboard's texts lack: those that are not marked, extracted or translated, or translated otherwise.
import { readdirSync, readFileSync } from "node:fs";
import process from "node:process";

import { parseSync, traverse } from "@babel/core";
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
/** Attributes that people read or hear. */
const READ = /^(?:aria-label|aria-valuetext|title|placeholder|label|heading|hint|confirm|alt)$/;
/** Names, units and examples that are the same in every language. */
const SAME = /^(?:TorchYard|REST API|GPU|CPU|YAML|CSV|[^\p{L}]*|ty_…|Ctrl K|[a-z.]+|\S*[:=/_]\S*)$/u;

/** Texts of a file's JSX that stand there without a mark. */
function unmarked(file) {
  const options = { filename: file, babelrc: false, configFile: false, parserOpts: { plugins: ["typescript", "jsx"] } };
  const found = [];
  const note = (text, { line }) => {
    if (!SAME.test(text)) found.push(`${file}:${line}: not marked for translation: ${text}`);
  };
  traverse(parseSync(readFileSync(file, "utf8"), options), {
    JSXText(path) {
      const marked = path.findParent(({ node }) => /^(?:Trans|Plural)$/.test(node.openingElement?.name.name ?? ""));
      if (marked === null) note(path.node.value.trim(), path.node.loc.start);
    },
    JSXAttribute({ node }) {
      if (READ.test(node.name.name) && node.value?.type === "StringLiteral") note(node.value.value, node.loc.start);
    },
  });
  return found;
}

const files = readdirSync("src", { recursive: true }).filter((file) => file.endsWith(".tsx"));
faults.push(...files.sort().flatMap((file) => unmarked(`src/${file}`)));

if (faults.length > 0) {
  process.stderr.write(`${faults.join("\n")}\nRun \`npm run extract\`, and translate what is empty in src/locales.\n`);
  process.exitCode = 1;
}
