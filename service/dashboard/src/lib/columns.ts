import { t } from "@lingui/core/macro";

/** Columns of the list beside the job's number and name; `width` is a grid track. */
export const COLUMNS = [
  { key: "state", label: t`State`, width: "134px" },
  { key: "user", label: t`User`, width: "minmax(60px, 0.5fr)" },
  { key: "project", label: t`Project`, width: "minmax(66px, 0.5fr)" },
  { key: "tags", label: t`Tags`, width: "minmax(48px, 0.7fr)" },
  { key: "priority", label: t`Priority`, width: "88px" },
  { key: "resources", label: "", width: "84px" },
  { key: "progress", label: t`Progress`, width: "minmax(140px, 1.1fr)" },
  { key: "latest", label: t`Latest`, width: "minmax(104px, 1fr)" },
  { key: "ran", label: t`Ran`, width: "96px" },
  { key: "age", label: t`Age`, width: "66px" },
] as const;

/** Tracks before those of the columns: the box to tick, the number and the name. */
export const FIRST: readonly string[] = ["34px", "minmax(132px, 1.6fr)"];

export type Column = (typeof COLUMNS)[number]["key"];

export const DEFAULT: readonly Column[] = ["state", "user", "project", "tags", "resources", "progress", "latest", "ran", "age"];
/** What a phone has room for. */
export const NARROW: readonly Column[] = ["state"];

/** The columns that a text names, in their order; the defaults without one. */
export function columnsOf(text: string | null | undefined): readonly Column[] {
  if (text == null || text === "") return DEFAULT;
  const named = text.split(",");
  return COLUMNS.map(({ key }) => key).filter((key) => named.includes(key));
}

/** The columns with one more, or without it; the defaults where none is left. */
export function toggled(columns: readonly Column[], column: Column): readonly Column[] {
  const next = COLUMNS.map(({ key }) => key).filter((key) => (key === column) !== columns.includes(key));
  return next.length === 0 ? DEFAULT : next;
}

const KEY = "torchyard-jobs-columns";

export function rememberedColumns(): string | null {
  return localStorage.getItem(KEY);
}

export function rememberColumns(text: string): void {
  localStorage.setItem(KEY, text);
}
