/** A field of specs whose values are not the same in all of them. */
export interface Difference {
  /** Its path, with dots. */
  path: string;
  /** Distinct values, and the places of the specs that have each. */
  values: { text: string; of: number[] }[];
}

type Json = Record<string, unknown>;

/** Fields that say in which environment a job runs. */
const ENVIRONMENT = /^(env|secrets|python|venv|conda|image|container|modules|setup|launcher|backend|environment)(\.|$)/;
/** Fields that differ from job to job and say nothing of what was run. */
export const NEVER: readonly string[] = ["name", "code"];

export function isEnvironment(path: string): boolean {
  return ENVIRONMENT.test(path);
}

/** Fields that are told as those of the spec: a variable is a setting as well, and is told there as on an axis. */
export function isSetting(path: string): boolean {
  return path.startsWith("env.") || !isEnvironment(path);
}

/** Where the specs differ, apart from some fields; a field that one of them lacks is absent there. */
export function differences(specs: readonly Json[], except = NEVER): Difference[] {
  const flat = specs.map((spec) => leaves(spec));
  const paths = [...new Set(flat.flatMap((one) => [...one.keys()]))].filter((path) => !except.includes(path)).sort();
  return paths.flatMap((path) => {
    const values = new Map<string, number[]>();
    flat.forEach((one, index) => {
      const value = one.get(path);
      const text = value === undefined ? "" : words(value);
      values.set(text, [...(values.get(text) ?? []), index]);
    });
    if (values.size < 2) return [];
    return [{ path, values: [...values].map(([text, of]) => ({ text, of })) }];
  });
}

/** Fields of a spec by their paths; lists as texts. */
export function leaves(spec: Json): Map<string, unknown> {
  const found = new Map<string, unknown>();
  const add = (part: Json, prefix: string) => {
    for (const [name, value] of Object.entries(part)) {
      if (typeof value === "object" && value !== null && !Array.isArray(value)) add(value as Json, `${prefix}${name}.`);
      else if (value !== null) found.set(`${prefix}${name}`, Array.isArray(value) ? words(value) : value);
    }
  };
  add(spec, "");
  return found;
}

function words(value: unknown): string {
  if (typeof value === "string") return value;
  const plain = Array.isArray(value) && value.every((one) => typeof one === "string");
  return plain ? value.join(" ") : JSON.stringify(value);
}

export interface DiffLine {
  kind: "same" | "added" | "removed" | "skipped";
  text: string;
  /** Numbers of the line before and after, from 1. */
  before: number | null;
  after: number | null;
}

/** Lines of a file that are compared at most; of larger ones only the ends that are the same are found. */
const MOST = 4_000;

/** The lines of two texts, with `context` equal lines around each change; null where nothing differs. */
export function diffLines(before: string, after: string, context = 3): DiffLine[] | null {
  if (before === after) return null;
  const [a, b] = [before.split("\n"), after.split("\n")];
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a.at(-1 - end) === b.at(-1 - end)) end += 1;
  const lines: DiffLine[] = [];
  const same = (i: number, j: number) => lines.push({ kind: "same", text: a[i] ?? "", before: i + 1, after: j + 1 });
  for (let i = 0; i < start; i += 1) same(i, i);
  lines.push(...middle(a.slice(start, a.length - end), b.slice(start, b.length - end), start));
  for (let i = end; i > 0; i -= 1) same(a.length - i, b.length - i);
  return shorten(lines, context);
}

/** The longest common subsequence of two short lists of lines; of long ones all is removed and added. */
function middle(a: readonly string[], b: readonly string[], shift: number): DiffLine[] {
  const removed = (i: number): DiffLine => ({ kind: "removed", text: a[i] ?? "", before: shift + i + 1, after: null });
  const added = (j: number): DiffLine => ({ kind: "added", text: b[j] ?? "", before: null, after: shift + j + 1 });
  if (a.length * b.length > MOST * MOST) return [...a.map((_, i) => removed(i)), ...b.map((_, j) => added(j))];
  const left = longest(a, b);
  const lines: DiffLine[] = [];
  let [i, j] = [0, 0];
  while (i < a.length && j < b.length) {
    if (a[i] === b[j]) {
      lines.push({ kind: "same", text: a[i] ?? "", before: shift + i + 1, after: shift + j + 1 });
      i += 1;
      j += 1;
    } else if (left(i + 1, j) >= left(i, j + 1)) {
      lines.push(removed(i));
      i += 1;
    } else {
      lines.push(added(j));
      j += 1;
    }
  }
  for (; i < a.length; i += 1) lines.push(removed(i));
  for (; j < b.length; j += 1) lines.push(added(j));
  return lines;
}

/** How many lines the rests of two lists have in common, from a line of each on. */
function longest(a: readonly string[], b: readonly string[]): (i: number, j: number) => number {
  const width = b.length + 1;
  const table = new Uint16Array((a.length + 1) * width);
  const left = (i: number, j: number) => table[i * width + j] ?? 0;
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      table[i * width + j] = a[i] === b[j] ? left(i + 1, j + 1) + 1 : Math.max(left(i + 1, j), left(i, j + 1));
    }
  }
  return left;
}

function shorten(lines: readonly DiffLine[], context: number): DiffLine[] {
  const near = new Uint8Array(lines.length);
  lines.forEach((line, at) => {
    if (line.kind !== "same") near.fill(1, Math.max(0, at - context), at + context + 1);
  });
  const shown: DiffLine[] = [];
  lines.forEach((line, at) => {
    if (near[at] === 1) shown.push(line);
    else if (shown.at(-1)?.kind !== "skipped") shown.push({ kind: "skipped", text: "", before: null, after: null });
  });
  return shown;
}
