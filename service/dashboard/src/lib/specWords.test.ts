import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";

import { words } from "../locales/zh-CN.fields";
import type { FormField, Schemas } from "./schema";
import { allFields, specForm } from "./specForm";
import { inWords } from "./specWords";

const described = JSON.parse(readFileSync("../../openapi.json", "utf8")) as { components: { schemas: Schemas } };
const schemas = described.components.schemas;

/** What the form can show, each of it once: its fields with those within them, and the help texts. */
function shownBy(chosen: typeof words | null): { fields: FormField[]; helps: string[] } {
  const form = specForm(schemas.JobSpec ?? {}, schemas, chosen);
  const fields = (form === null ? [] : allFields(form)).flatMap(withInner);
  const helps = fields.flatMap((field) => [
    field.help, ...field.kind === "variant" ? field.variants.map(({ help }) => help) : [],
  ]);
  return { fields, helps: [...new Set(helps)].filter((text) => text !== "") };
}

function withInner(field: FormField): FormField[] {
  const inner = field.kind === "group"
    ? field.fields
    : field.kind === "variant" ? field.variants.flatMap((one) => one.fields) : [];
  return [field, ...inner.flatMap(withInner)];
}

const own = shownBy(null);
const pathOf = ({ path }: FormField) => path.join(".");
const optionsOf = (fields: readonly FormField[]) => (
  [...new Set(fields.flatMap((field) => (field.kind === "choice" ? field.options.map(String) : [])))]
);
const isChinese = (text: string) => /\p{Script=Han}/u.test(text);
const codes = (text: string) => [...new Set(text.match(/`[^`]+`/g))].sort();

/** Values that are names in every language, or yes and no. */
const NAMES = new RegExp(
  "^(?:true|false|torchrun|launch|python|imagenet|gloo|nccl|mpi|tcp|gpipe|powersgd|1f1b|[bf][fp](?:16|32)|\\d+)$",
);

describe("the Chinese words of the form", () => {
  it("has a label for every field, and none that no field takes", () => {
    const { fields } = shownBy(words);
    expect(fields.length).toBeGreaterThan(150);
    expect(fields.filter(({ label }) => !isChinese(label)).map(pathOf)).toEqual([]);
    const taken = own.fields.map((field) => (pathOf(field) in words.labels ? pathOf(field) : field.path.at(-1)));
    expect(Object.keys(words.labels).filter((key) => !taken.includes(key))).toEqual([]);
  });

  it("says of every field and variant what it is, with the same code, and nothing else", () => {
    expect(shownBy(words).helps.filter((text) => !isChinese(text))).toEqual([]);
    expect(Object.keys(words.helps).filter((text) => !own.helps.includes(text))).toEqual([]);
    const other = Object.entries(words.helps).filter(([text, said]) => codes(text).join() !== codes(said).join());
    expect(other).toEqual([]);
  });

  it("says what every value means that is no name, and nothing else", () => {
    const options = optionsOf(own.fields);
    expect(options.filter((value) => !NAMES.test(value) && !isChinese(words.options[value] ?? ""))).toEqual([]);
    expect(Object.keys(words.options).filter((value) => !options.includes(value))).toEqual([]);
  });
});

describe("inWords", () => {
  const bare = { path: ["hang", "after"], label: "After", help: "So long.", without: null, unit: null };

  it("takes the words of the path before those of the name, and names the field beside them", () => {
    const some = { labels: { after: "A", "hang.after": "B" }, options: {}, helps: { "So long.": "C" } };
    expect(inWords({ ...bare, kind: "line" }, some)).toMatchObject({ label: "B (after)", help: "C" });
    expect(inWords({ ...bare, kind: "line", path: ["after"] }, some)).toMatchObject({ label: "A (after)" });
  });

  it("leaves what it has no words for", () => {
    const none = { labels: {}, options: {}, helps: {} };
    expect(inWords({ ...bare, kind: "line" }, none)).toEqual({ ...bare, kind: "line" });
  });
});
