import { inUnit, type Unit } from "./setting";

/** A JSON Schema, as far as that of a job's spec goes. */
export interface Schema {
  $ref?: string;
  title?: string;
  description?: string;
  type?: string;
  enum?: readonly unknown[];
  const?: unknown;
  default?: unknown;
  examples?: readonly unknown[];
  items?: Schema;
  anyOf?: readonly Schema[];
  properties?: Readonly<Record<string, Schema>>;
  required?: readonly string[];
  additionalProperties?: boolean | Schema;
  /** What its numbers count, if that is no plain number. */
  "x-unit"?: Unit;
}

export type Schemas = Readonly<Record<string, Schema>>;
export type Path = readonly string[];

/** How a field is filled in. */
export type Kind =
  | { kind: "line" | "text" | "words" | "list" | "variables" | "yaml" }
  | {
    kind: "choice";
    options: readonly (string | boolean | number)[];
    /** What some of them mean, where the page's language is not theirs. */
    meanings?: Readonly<Record<string, string>>;
  }
  | { kind: "group"; fields: readonly FormField[] }
  | { kind: "variant"; variants: readonly Variant[] };

export type FormField = Kind & {
  path: Path;
  label: string;
  help: string;
  /** What it is when it is left out, in words; null where nothing stands for that. */
  without: string | null;
  /** What a plain number counts; null where it is one. */
  unit: Unit | null;
};

/** One of several shapes of an object, told apart by its name. */
export interface Variant {
  name: string;
  help: string;
  fields: readonly FormField[];
}

const ACRONYMS: Readonly<Record<string, string>> = { gpus: "GPUs", gpu: "GPU", cpus: "CPUs", lr: "Learning rate" };

/** A field's name as a person reads it: `gpu_memory_min` is "GPU memory min". */
export function labelOf(name: string): string {
  const text = name.split("_").map((word) => ACRONYMS[word] ?? word).join(" ");
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** The fields of an object, in the schema's order, each with how it is filled in. */
export function fieldsOf(schema: Schema, schemas: Schemas, at: Path = []): FormField[] {
  const named = Object.entries(resolved(schema, schemas).properties ?? {}).filter(([, one]) => one.const === undefined);
  return named.map(([name, one]) => field(one, schemas, [...at, name]));
}

function field(schema: Schema, schemas: Schemas, path: Path): FormField {
  const inner = optional(schema, schemas);
  const target = resolved(inner, schemas);
  return {
    ...kindOf(inner, schemas, path),
    path,
    label: labelOf(path.at(-1) ?? ""),
    help: sentence(schema.description ?? target.description ?? ""),
    without: wordsOf(schema.default, inner["x-unit"]),
    unit: inner["x-unit"] ?? null,
  };
}

function kindOf(schema: Schema, schemas: Schemas, path: Path): Kind {
  const { anyOf, type, items, enum: options, properties, additionalProperties } = resolved(schema, schemas);
  if (options !== undefined) return { kind: "choice", options: options as string[] };
  if (type === "boolean") return { kind: "choice", options: [true, false] };
  if (properties !== undefined) return { kind: "group", fields: fieldsOf(schema, schemas, path) };
  if (anyOf !== undefined) return kindOfUnion(anyOf.map((one) => resolved(one, schemas)), schemas, path);
  if (type === "array") return { kind: isText(items, schemas) ? "list" : "yaml" };
  if (type === "object") return { kind: isScalars(additionalProperties) ? "variables" : "yaml" };
  return { kind: type === undefined ? "yaml" : type === "string" ? "text" : "line" };
}

function kindOfUnion(some: readonly Schema[], schemas: Schemas, path: Path): Kind {
  const objects = some.filter((one) => nameOf(one) !== null);
  if (objects.length > 0) return { kind: "variant", variants: objects.map((one) => variant(one, schemas, path)) };
  const constants = some.flatMap((one) => (one.const === undefined ? [] : [one.const]));
  if (some.every((one) => one.type === "boolean" || one.const !== undefined)) {
    return { kind: "choice", options: [...(constants as string[]), true, false] };
  }
  if (some.some((one) => one.type === "array") && some.some((one) => one.type === "string")) return { kind: "words" };
  return { kind: some.every((one) => one.type !== "array" && one.type !== "object") ? "line" : "yaml" };
}

const variant = (schema: Schema, schemas: Schemas, path: Path): Variant => ({
  name: nameOf(schema) ?? "", help: sentence(schema.description ?? ""), fields: fieldsOf(schema, schemas, path),
});

/** The name by which an object is told from others that may stand in its place. */
function nameOf(schema: Schema): string | null {
  const name = schema.properties?.name?.const;
  return typeof name === "string" ? name : null;
}

/** What a field is when it is left out; undefined where the schema does not say, or knows no such field. */
export function defaultAt(schema: Schema, schemas: Schemas, path: Path): unknown {
  const found = schemaAt(schema, schemas, path);
  if (typeof found?.default !== "string") return found?.default;
  const named = found.anyOf?.map((one) => resolved(one, schemas)).find((one) => nameOf(one) === found.default);
  if (named === undefined) return found.default;
  const fields = Object.entries(named.properties ?? {});
  return Object.fromEntries(fields.map(([name, one]) => [name, one.const ?? one.default]));
}

/** What a plain number counts that stands at a path; null where it is one. */
export function unitAt(schema: Schema, schemas: Schemas, path: Path): Unit | null {
  const found = schemaAt(schema, schemas, path);
  return found === undefined ? null : optional(found, schemas)["x-unit"] ?? null;
}

function schemaAt(schema: Schema, schemas: Schemas, path: Path): Schema | undefined {
  const [name, ...rest] = path;
  if (name === undefined) return schema;
  const found = resolved(optional(schema, schemas), schemas).properties?.[name];
  return found === undefined ? undefined : schemaAt(found, schemas, rest);
}

function resolved(schema: Schema, schemas: Schemas): Schema {
  const { $ref } = schema;
  return $ref === undefined ? schema : schemas[$ref.slice($ref.lastIndexOf("/") + 1)] ?? {};
}

/** A schema without its null, which leaving the field out says, too. */
function optional(schema: Schema, schemas: Schemas): Schema {
  const { anyOf, ...rest } = resolved(schema, schemas);
  if (anyOf === undefined) return schema;
  const some = anyOf.filter(({ type }) => type !== "null");
  const [only] = some;
  return some.length === 1 && only !== undefined ? only : { ...rest, anyOf: some };
}

const isText = (items: Schema | undefined, schemas: Schemas) =>
  items !== undefined && resolved(items, schemas).type === "string";

function isScalars(values: boolean | Schema | undefined): boolean {
  if (typeof values !== "object") return false;
  return (values.anyOf ?? [values]).every(({ type }) => type !== undefined && type !== "array" && type !== "object");
}

function wordsOf(value: unknown, unit: Unit | undefined): string | null {
  if (typeof value === "number" && unit !== undefined) return inUnit(value, unit);
  if (value === undefined || value === null || typeof value === "object") return null;
  return typeof value === "string" ? value : JSON.stringify(value);
}

const sentence = (text: string) => text.replaceAll("``", "`").replaceAll("\n", " ");
