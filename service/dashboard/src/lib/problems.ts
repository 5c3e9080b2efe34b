import { t } from "@lingui/core/macro";

import type { components } from "../api/schema";
import { STATE_LABELS } from "./states";

/** The words of what the service refuses with, in a language that it does not speak itself. */
export interface ProblemWords {
  /** What kinds of problems are called, by the end of their type. */
  titles: Readonly<Record<string, string>>;
  /** Messages by their code; in braces what is put into them. */
  messages: Readonly<Record<string, string>>;
}

/** Wrong fields that a sentence tells of; each stands at its field, too. */
const MOST_TOLD = 3;

type FieldProblem = components["schemas"]["FieldProblem"];
/** Problem details, as far as they are there. */
interface Problem {
  type?: unknown;
  title?: unknown;
  detail?: unknown;
  code?: string | null;
  params?: Params;
  errors?: FieldProblem[];
}
type Params = components["schemas"]["Sentence"]["params"];
interface Sentence {
  message: string;
  code?: string | null | undefined;
  params?: Params | undefined;
}

/** A message in those words; as the service says it where there are none. */
export function messageWords({ message, code, params = {} }: Sentence, words: ProblemWords): string {
  if (code == null || !Object.hasOwn(words.messages, code)) return message;
  const template = words.messages[code] ?? message;
  const absent = placeholders(template).some((name) => !Object.hasOwn(params, name));
  return absent ? message : template.replace(PLACEHOLDER, (_, name: string) => textOf(name, params[name], words));
}

/** Problem details in those words; anything else as it is. */
export function problemIn(words: ProblemWords, body: unknown): unknown {
  if (typeof body !== "object" || body === null) return body;
  const problem = body as Problem;
  const errors = Array.isArray(problem.errors) ? problem.errors : [];
  const told = errors.map((one) => ({ ...one, message: messageWords(one, words) }));
  return { ...problem, detail: detailIn(words, problem, told), errors: told };
}

/** What is wrong with a request: its own words, those of its fields, or the kind of the problem and the English. */
function detailIn(words: ProblemWords, problem: Problem, told: readonly FieldProblem[]): unknown {
  const { type, title, detail = title, code, params } = problem;
  if (typeof detail !== "string") return detail;
  const sentence = { message: detail, code, params };
  if (code != null && Object.hasOwn(words.messages, code)) return messageWords(sentence, words);
  if (told.some((one) => one.code != null)) return faults(told);
  const kind = words.titles[String(type).split("/").at(-1) ?? ""];
  return kind === undefined ? detail : t`${kind}: ${detail}`;
}

function faults(told: readonly FieldProblem[]): string {
  const first = told.slice(0, MOST_TOLD).map(({ field, message }) => fault(field, message));
  return first.join("; ") + (told.length > first.length ? "; …" : "");
}

const fault = (field: string, mistake: string) => t`${field}: ${mistake}`;

const PLACEHOLDER = /\{(\w+)\}/gu;

/** Names of what a template is filled with. */
export const placeholders = (template: string) => [...template.matchAll(PLACEHOLDER)].map(([, name = ""]) => name);

/** A job's state as it is called elsewhere on the page. */
const termOf = (name: string, value: string) => (
  name === "state" && Object.hasOwn(STATE_LABELS, value) ? STATE_LABELS[value as keyof typeof STATE_LABELS] : value
);

function textOf(name: string, value: Params[string] | undefined, words: ProblemWords): string {
  if (Array.isArray(value)) return value.join(", ");
  return typeof value === "object" ? messageWords(value, words) : termOf(name, String(value));
}
