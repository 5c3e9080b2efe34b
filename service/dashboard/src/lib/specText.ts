import { t } from "@lingui/core/macro";
import { type Document, isMap, parse, parseDocument, stringify } from "yaml";

import type { FormField, Path } from "./schema";
import { inUnit, type Unit } from "./setting";

export type Spec = Record<string, unknown>;

/** A spec as text, and as the value that it stands for; null where the text is none. */
export interface SpecText {
  text: string;
  spec: Spec | null;
  /** What is wrong with the text. */
  fault: { line: number; message: string } | null;
}

/** What a text of YAML says. */
export function readSpec(text: string): SpecText {
  const document = parseDocument(text);
  const [error] = document.errors;
  if (error !== undefined) {
    const [message = ""] = error.message.split(/ at line \d+/u);
    return { text, spec: null, fault: { line: error.linePos?.[0].line ?? 1, message } };
  }
  if (document.contents === null) return { text, spec: {}, fault: null };
  if (!isMap(document.contents)) return { text, spec: null, fault: { line: 1, message: t`Write fields, such as name: train` } };
  try {
    return { text, spec: document.toJS() as Spec, fault: null };
  } catch (error) { // an alias without an anchor, or too many of them
    return { text, spec: null, fault: { line: 1, message: error instanceof Error ? error.message : String(error) } };
  }
}

/** The text with one field set, its comments and its order kept; undefined takes the field away. */
export function withField(text: string, path: Path, value: unknown): string {
  const document = parseDocument(text);
  if (!isMap(document.contents)) document.contents = document.createNode({}) as unknown as typeof document.contents;
  if (value === undefined) removeField(document, path);
  else setField(document, path, value);
  const made = document.toString({ lineWidth: 0, flowCollectionPadding: false });
  return made === "{}\n" ? "" : made;
}

function setField(document: Document, path: Path, value: unknown): void {
  // What stands above it may be something else, such as the bare name of a model.
  for (let length = 1; length < path.length; length += 1) {
    const above = path.slice(0, length);
    const node = document.getIn(above, true);
    if (isMap(node)) node.flow &&= node.items.length > 0; // what was written as {} is written in lines
    else {
      const name = document.getIn(above);
      document.setIn(above, document.createNode(typeof name === "string" ? { name } : {}));
    }
  }
  // A bare value goes into the node that is there, whose comment stays.
  document.setIn(path, typeof value === "object" ? document.createNode(value) : value);
}

/** Takes a field away, and what is empty above it then. */
function removeField(document: Document, path: Path): void {
  if (!document.hasIn(path)) return;
  document.deleteIn(path);
  const above = path.slice(0, -1);
  const left: unknown = above.length === 0 ? null : document.getIn(above, true);
  if (isMap(left) && left.items.length === 0) removeField(document, above);
}

/** The value at a path; undefined where there is none. */
export function valueAt(spec: Spec, path: Path): unknown {
  return path.reduce<unknown>((value, name) => (isObject(value) ? value[name] : undefined), spec);
}

export const isObject = (value: unknown): value is Spec =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** A field's value as it stands in its input. */
export function shown(kind: FormField["kind"], value: unknown, unit: Unit | null = null): string {
  if (value === undefined || value === null) return "";
  if (kind === "words" && Array.isArray(value)) return value.map((word) => quoted(String(word))).join(" ");
  if (kind === "list" && Array.isArray(value)) return value.map(String).join("\n");
  if (kind === "variables" && isObject(value)) {
    return Object.entries(value).map(([name, one]) => `${name}=${String(one)}`).join("\n");
  }
  if (typeof value === "object") return stringify(value, { lineWidth: 0 }).trimEnd();
  return scalar(value, unit);
}

function scalar(value: unknown, unit: Unit | null): string {
  if (typeof value === "number" && unit !== null) return inUnit(value, unit);
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** What a person has typed as a field's value; undefined for nothing. It throws for what is none. */
export function typed(kind: FormField["kind"], text: string): unknown {
  if (text.trim() === "") return undefined;
  if (kind === "words") return text;
  if (kind === "text") return text.trim();
  if (kind === "list") return text.split("\n").map((line) => line.trim()).filter((line) => line !== "");
  if (kind === "variables") return Object.fromEntries(text.split("\n").filter((line) => line.trim() !== "").map(variable));
  if (kind === "yaml") return parse(text);
  const number = Number(text);
  return /^-?\d/u.test(text.trim()) && Number.isFinite(number) ? number : text.trim();
}

function variable(line: string): [string, string] {
  const at = line.indexOf("=");
  const text = line.trim();
  if (at < 1) throw new Error(t`Write NAME=VALUE, not ${text}`);
  return [line.slice(0, at).trim(), line.slice(at + 1)];
}

/** A word as a shell reads it. */
const quoted = (word: string) => (/^[\w@%+=:,./{}-]+$/u.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

/** What the schema says of a field. */
export interface Known {
  /** What it is when it is left out. */
  usual: unknown;
  unit: Unit | null;
}

/** A stored spec as a person would write it: with units, without what is null or stands for itself by default. */
export function written(spec: Spec, known: (path: Path) => Known, at: Path = []): Spec {
  return Object.fromEntries(Object.entries(spec).flatMap(([name, value]) => {
    const path = [...at, name];
    const { usual, unit } = known(path);
    if (value === null || isSame(value, usual)) return [];
    if (typeof value === "number" && unit !== null) return [[name, inUnit(value, unit)]];
    const inner = isObject(value) && name !== "env" && value.name === undefined ? written(value, known, path) : value;
    return isSame(inner, {}) && isObject(usual) ? [] : [[name, inner]];
  }));
}

/** The JSON merge patch (RFC 7396) that makes `after` of `before`. */
export function mergePatch(before: Spec, after: Spec): Spec {
  const gone = Object.keys(before).filter((name) => !(name in after) && before[name] !== null);
  const set = Object.entries(after).flatMap(([name, value]) => {
    const old = before[name];
    if (isSame(old, value)) return [];
    return [[name, isObject(old) && isObject(value) ? mergePatch(old, value) : value]];
  });
  return Object.fromEntries([...gone.map((name) => [name, null]), ...set] as [string, unknown][]);
}

/** Whether two values say the same, in whatever order their names stand. */
export function isSame(one: unknown, other: unknown): boolean {
  if (Array.isArray(one) && Array.isArray(other)) {
    return one.length === other.length && one.every((each, at) => isSame(each, other[at]));
  }
  if (!isObject(one) || !isObject(other)) return one === other;
  const names = Object.keys(one);
  if (names.length !== Object.keys(other).length) return false;
  return names.every((name) => name in other && isSame(one[name], other[name]));
}
