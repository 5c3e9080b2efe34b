import type { Curve, Curves, Job } from "../api/types";

/** A run's place among those compared, which gives it its colour. */
export interface Run {
  job: Job;
  index: number;
  color: string;
}

/** Hues that follow one another at the golden angle stay apart however many there are. */
const GOLDEN_ANGLE = 137.508;
/** Runs that get the chart's own colours, which are told apart best. */
const NAMED = 8;

/** The colour of a run as a value of CSS; those beyond the chart's own colours are hues of their own. */
export function colorOf(index: number): string {
  if (index < NAMED) return `var(--series-${index + 1})`;
  return `hsl(${Math.round((index * GOLDEN_ANGLE) % 360)} 62% var(--run-light))`;
}

export function toRuns(jobs: readonly Job[]): Run[] {
  return jobs.map((job, index) => ({ job, index, color: colorOf(index) }));
}

/** The places of some jobs among the runs, by id: places move when a run is added or left out. */
export function placesOf(ids: ReadonlySet<string>, runs: readonly Run[]): ReadonlySet<number> {
  return new Set(runs.flatMap(({ job, index }) => (ids.has(job.id) ? [index] : [])));
}

/** The ids of the jobs at some places among the runs. */
export function idsAt(places: ReadonlySet<number>, runs: readonly Run[]): ReadonlySet<string> {
  return new Set(runs.flatMap(({ job, index }) => (places.has(index) ? [job.id] : [])));
}

/** The numbers or ids in an address, each once. */
export function parseRefs(text: string): string[] {
  return [...new Set(text.split(",").map((one) => one.trim()).filter((one) => one !== ""))];
}

/** Metrics that the runs have reported: those of most runs first, then by name. */
export function metricsOfRuns(jobs: readonly Job[]): string[] {
  const counts = new Map<string, number>();
  for (const job of jobs) for (const name of Object.keys(job.latest)) counts.set(name, (counts.get(name) ?? 0) + 1);
  const rank = (name: string) => (/loss/i.test(name) ? 0 : /acc|f1|auc|score|bleu|reward/i.test(name) ? 1 : 2);
  return [...counts.entries()]
    .sort(([one, a], [other, b]) => rank(one) - rank(other) || b - a || one.localeCompare(other))
    .map(([name]) => name);
}

type Cell = number | null | undefined;

/** Curves as a chart draws them: one row for each part of the grid. */
export interface Grid {
  x: number[];
  /** By run: the mean in each row; undefined where the run has no point there. */
  mean: Cell[][];
  low: Cell[][];
  high: Cell[][];
  width: number;
  /** Number of the first row's part. */
  first: number;
}

/** Where part `n` of a grid is drawn: in its middle, and a single step where it is. */
function placeOf(number: number, width: number, byStep: boolean): number {
  return byStep ? number * width + (width - 1) / 2 : (number + 0.5) * width;
}

/** Brings the curves of the runs, in their order, into one table. */
export function toGrid({ curves, width }: Curves, jobs: readonly string[], byStep: boolean): Grid {
  const ofJob = new Map(curves.map((curve) => [curve.job, curve]));
  let [first, last] = [Infinity, -Infinity];
  for (const { number, special } of curves) {
    for (const column of [number, special]) {
      first = Math.min(first, column[0] ?? Infinity);
      last = Math.max(last, column.at(-1) ?? -Infinity);
    }
  }
  const rows = Number.isFinite(first) ? last - first + 1 : 0;
  const x = Array.from({ length: rows }, (_, row) => placeOf(first + row, width, byStep));
  const column = (curve: Curve | undefined, values: readonly number[] | undefined) => {
    const cells = new Array<Cell>(rows).fill(undefined);
    if (curve === undefined || values === undefined) return cells;
    // What is no number breaks the line where nothing else is known.
    for (const number of curve.special) cells[number - first] = null;
    curve.number.forEach((number, at) => {
      cells[number - first] = values[at];
    });
    return cells;
  };
  const columns = (of: "mean" | "min" | "max") => jobs.map((id) => {
    const curve = ofJob.get(id);
    return column(curve, curve?.[of]);
  });
  return { x, mean: columns("mean"), low: columns("min"), high: columns("max"), width, first };
}

/** Rows as a table of RFC 4180. */
export function toCsv(rows: readonly (readonly (string | number | null | undefined)[])[]): string {
  const cell = (value: string | number | null | undefined) => {
    const text = value == null ? "" : String(value);
    // A spreadsheet takes a word that begins like a formula for one.
    const safe = typeof value === "string" && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
    return /[",\r\n]/.test(safe) ? `"${safe.replaceAll("\"", "\"\"")}"` : safe;
  };
  return rows.map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";
}
