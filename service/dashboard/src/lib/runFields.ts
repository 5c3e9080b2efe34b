import type { Job } from "../api/types";
import { leaves, NEVER } from "./differences";

/** Words that an axis has at most: more, such as folders of outputs, are names and no settings. */
const MOST_WORDS = 12;

/** Each run's fields, of those in which runs differ, by name: parameters, options of commands, others of the spec. */
export function differingFields(jobs: readonly Job[]): Record<string, unknown>[] {
  const fields = jobs.map(fieldsOf);
  const seen = new Set<string>();
  const differing = [...new Set(fields.flatMap((one) => [...one.keys()]))].filter((name) => {
    const column = fields.map((one) => one.get(name));
    const values = new Set(column);
    const words = [...values].filter((value) => typeof value === "string");
    // A parameter stands in the command too: one axis is enough.
    const key = JSON.stringify(column.map((value) => value ?? null));
    if (values.size < 2 || words.length > MOST_WORDS || seen.has(key)) return false;
    seen.add(key);
    return true;
  });
  return fields.map((one) => Object.fromEntries([...one].filter(([name]) => differing.includes(name))));
}

function fieldsOf(job: Job): Map<string, unknown> {
  const { command, ...rest } = job.spec;
  const { options, others } = readCommand(Array.isArray(command) ? command.map(String) : []);
  const own = Object.entries(job.parameters ?? {}).filter(([, value]) => value !== null);
  const all = [...own, ...options, ["command", others.join(" ")] as const, ...leaves(rest)];
  const found = new Map<string, unknown>();
  for (const [name, value] of all) if (!found.has(name) && !NEVER.includes(name)) found.set(name, plain(value));
  return found;
}

/** Options of a command, `--lr 0.1`, `--lr=0.1`, `--amp` or `optimizer.lr=0.1`, and its other words. */
function readCommand(words: readonly string[]): { options: [string, unknown][]; others: string[] } {
  const options: [string, unknown][] = [];
  const others: string[] = [];
  for (let at = 0; at < words.length; at += 1) {
    const [word = "", next] = [words[at], words[at + 1]];
    const [, name, value] = /^(--?[A-Za-z][\w.-]*|[A-Za-z_][\w.]*(?==))(?:=(.*))?$/s.exec(word) ?? [];
    if (name === undefined) others.push(word);
    else if (value !== undefined) options.push([name, value]);
    else if (next === undefined || /^--?[A-Za-z]/.test(next)) options.push([name, true]);
    else {
      options.push([name, next]);
      at += 1;
    }
  }
  return { options, others };
}

/** A number where a text is one; what is no single value as a text. */
function plain(value: unknown): unknown {
  if (typeof value === "string") return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(value) ? Number(value) : value;
  return typeof value === "number" ? value : JSON.stringify(value);
}
