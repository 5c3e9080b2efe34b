import { t } from "@lingui/core/macro";

import { fieldsOf, type FormField, type Schema, type Schemas } from "./schema";
import { inWords, type SpecWords } from "./specWords";

/** Fields that most jobs set, in the order in which they are shown. */
const COMMON = ["name", "project", "priority", "tags"];
/** What is run: one of the two. */
export const WORK = ["command", "recipe"];
/** Fields of `resources` that most jobs set. */
const COMMON_RESOURCES = ["gpus", "nodes"];

/** Fields of `recipe` that most runs of the built-in trainer set. */
const COMMON_RECIPE = ["model", "data", "optim", "strategy", "epochs", "batch_size"];

/** The others, by what they are about. */
const GROUPS = [
  { title: t`Code and environment`, names: ["launcher", "code", "live", "link", "link_root", "python", "env", "secrets", "network", "warm_start"] },
  { title: t`Limits and retries`, names: ["time_limit", "start_limit", "idle_limit", "idle_action", "max_retries", "grace", "hang", "log_limit"] },
  { title: t`Preemption and checkpoints`, names: ["preemptible", "restartable", "checkpoint", "resume", "carry"] },
  { title: t`Outputs and trackers`, names: ["outputs", "trackers"] },
  { title: t`Other jobs and sweeps`, names: ["after", "sweep"] },
];

export interface FormGroup {
  title: string;
  fields: readonly FormField[];
}

export interface SpecForm {
  common: readonly FormField[];
  command: FormField;
  recipe: FormField;
  /** Fields of the recipe that are folded. */
  moreRecipe: FormGroup;
  resources: readonly FormField[];
  groups: readonly FormGroup[];
}

/** The form of a spec by its schema, in its words or those that are given; every field stands somewhere. */
export function specForm(schema: Schema, schemas: Schemas, words: SpecWords | null): SpecForm | null {
  const described = fieldsOf(schema, schemas).map((field) => (words === null ? field : inWords(field, words)));
  const fields = new Map(described.map((field) => [field.path[0] ?? "", field]));
  const take = (names: readonly string[]) => names.flatMap((name) => {
    const found = fields.get(name);
    fields.delete(name);
    return found ?? [];
  });
  const [[command, recipe], common, [resources]] = [take(WORK), take(COMMON), take(["resources"])];
  if (command === undefined || recipe?.kind !== "group" || resources?.kind !== "group") return null;
  const isCommon = ({ path }: FormField) => COMMON_RESOURCES.includes(path[1] ?? "");
  const isRecipe = ({ path }: FormField) => COMMON_RECIPE.includes(path[1] ?? "");
  const groups = [
    { title: t`More of resources`, fields: resources.fields.filter((field) => !isCommon(field)) },
    ...GROUPS.map(({ title, names }) => ({ title, fields: take(names) })),
    { title: t`Other fields`, fields: [...fields.values()] },
  ];
  return {
    common,
    command,
    recipe: { ...recipe, fields: recipe.fields.filter(isRecipe) },
    moreRecipe: { title: t`More of the recipe`, fields: recipe.fields.filter((field) => !isRecipe(field)) },
    resources: resources.fields.filter(isCommon),
    groups: groups.filter((group) => group.fields.length > 0),
  };
}

/** A complaint of the service about one field. */
export interface Complaint {
  field: string;
  message: string;
}

/** The complaints about a field or what is within it; a group's own are about the group itself alone. */
export function complaintsOf(field: FormField, complaints: readonly Complaint[]): Complaint[] {
  const path = field.path.join(".");
  const within = field.kind !== "group" && field.kind !== "variant";
  return complaints.filter((one) => one.field === path || (within && one.field.startsWith(`${path}.`)));
}

/** The field of a form that a complaint is about, or the nearest above it; null if there is none. */
export function fieldAt(fields: readonly FormField[], path: string): FormField | null {
  for (const field of fields) {
    const own = field.path.join(".");
    if (path !== own && !path.startsWith(`${own}.`)) continue;
    const inner = field.kind === "group"
      ? field.fields
      : field.kind === "variant" ? field.variants.flatMap((variant) => variant.fields) : [];
    return fieldAt(inner, path) ?? field;
  }
  return null;
}

/** All fields of a form that stand by themselves, those of the recipe before the recipe. */
export function allFields({ common, command, recipe, moreRecipe, resources, groups }: SpecForm): FormField[] {
  return [...common, command, ...moreRecipe.fields, recipe, ...resources, ...groups.flatMap((group) => group.fields)];
}
