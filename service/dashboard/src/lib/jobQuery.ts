import { t } from "@lingui/core/macro";

import type { JobState } from "./states";
import { FINAL, TABS, type TabKey } from "./states";

/** What a search asks for, as `GET /jobs` takes it. */
export interface JobFilters {
  q?: string;
  user?: string;
  project?: string;
  tag?: string[];
  /** Number, id or name of a sweep. */
  group?: string;
  state?: JobState[];
  metric?: string[];
  /** Only jobs with smaller numbers, and with larger ones. */
  before?: number;
  after?: number;
}

/** A search that was read: what it asks for, and the words that were not understood, each with why. */
export interface ParsedQuery {
  filters: JobFilters;
  complaints: string[];
}

/** Words before a colon. */
export const KEYS = ["user", "project", "tag", "sweep", "state", "before", "after"] as const;
export type Key = (typeof KEYS)[number];

/** Words before a metric's name: its largest or smallest value is compared, instead of the newest. */
const EXTREMES = ["max", "min"] as const;
const METRIC = /(^|\s)((?:(?:max|min):)?[^\s<>=!:"]+)\s*(>=|<=|!=|=|>|<)\s*(\S+)/g;
const TERM = /(?:(user|project|tag|sweep|state|before|after):(?:"([^"]*)"|(\S*)))|"([^"]*)"|(\S+)/g;
const EVERY: readonly string[] = [...TABS.flatMap((tab) => tab.states), ...TABS.map((tab) => tab.key)];
/** States that a search names: those of jobs, and of the tabs. */
export const STATE_WORDS = [...new Set(EVERY)].filter((word) => word !== "all");

/**
 * Reads a search: `user:alice sweep:12 state:failed val/accuracy > 0.9 min:loss < 0.1 resnet`. Words without a key are
 * looked for in names; several tags or states are alternatives, several metrics must all pass; a value with spaces
 * stands in quotes.
 */
export function parseQuery(text: string): ParsedQuery {
  const filters: JobFilters = {};
  const complaints: string[] = [];
  const metric: string[] = [];
  const rest = text.replace(METRIC, (_, before: string, name: string, operator: string, value: string) => {
    if (Number.isNaN(Number(value))) complaints.push(t`${name} ${operator} ${value}: compare it with a number`);
    else metric.push(`${name}${operator}${value}`);
    return before;
  });
  const words: string[] = [];
  for (const [, key, quoted, bare, phrase, word] of rest.matchAll(TERM)) {
    const value = quoted ?? bare ?? "";
    if (key === undefined) words.push(phrase ?? word ?? "");
    else if (quoted === undefined && value === "") complaints.push(t`${key}: has no value`);
    else take(filters, key as Key, value, complaints);
  }
  if (metric.length > 0) filters.metric = metric;
  if (words.length > 0) filters.q = words.join(" ");
  return { filters, complaints };
}

function take(filters: JobFilters, key: Key, value: string, complaints: string[]): void {
  if (key === "tag") filters.tag = [...filters.tag ?? [], value];
  else if (key === "sweep") filters.group = value;
  else if (key === "before" || key === "after") {
    if (/^#?[1-9]\d{0,14}$/.test(value)) filters[key] = Number(value.replace("#", ""));
    else complaints.push(t`${value} is no number of a job: write it as ${key}:1200`);
  } else if (key !== "state") filters[key] = value;
  else {
    const states = statesNamed(value);
    const known = STATE_WORDS.join(", ");
    if (states.length === 0) complaints.push(t`${value} is no state: take one of ${known}`);
    filters.state = [...new Set([...filters.state ?? [], ...states])];
  }
}

function statesNamed(word: string): readonly JobState[] {
  const tab = TABS.find(({ key }) => key === word && key !== "all");
  if (tab !== undefined) return tab.states;
  return word === "ended" ? FINAL : TABS.flatMap(({ states }) => states as readonly JobState[]).filter((state) => state === word);
}

const written = (key: Key, value: string) => `${key}:${/[\s"]/.test(value) || value === "" ? `"${value}"` : value}`;

/** A search with another value of a key in place of those that it had; without a value, with none. */
export function withTerm(text: string, key: Key, value: string | null): string {
  const kept = text.replace(new RegExp(`(^|\\s)${key}:(?:"[^"]*"|\\S*)`, "g"), "$1");
  const words = kept.split(/\s+/).filter((word) => word !== "").join(" ");
  return [words, value === null ? "" : written(key, value)].filter((part) => part !== "").join(" ");
}

/** The tab of a search: that whose states it asks for. */
export function tabOf({ state = [] }: JobFilters): TabKey | null {
  const same = TABS.find(({ states }) => states.length === state.length && states.every((one) => state.includes(one)));
  return same?.key ?? null;
}

/** Something to go on with while one types. */
export interface Suggestion {
  /** The whole search with it, and where the caret is then. */
  text: string;
  caret: number;
  label: string;
}

/** Names that a search may hold. */
export interface Known {
  user: readonly string[];
  project: readonly string[];
  tag: readonly string[];
  sweep: readonly string[];
  metric: readonly string[];
}

/** Most suggestions at a time. */
const MOST = 8;

/** How the word before the caret may go on: a key, a value of its key, or a metric. */
export function suggestions(text: string, caret: number, known: Known): Suggestion[] {
  const before = text.slice(0, caret);
  const word = /\S*$/.exec(before)?.[0] ?? "";
  const [start, rest] = [caret - word.length, text.slice(caret)];
  const put = (label: string, whole: string): Suggestion => {
    const head = text.slice(0, start) + whole;
    return { text: head + rest, caret: head.length, label };
  };
  const colon = word.indexOf(":");
  const key = KEYS.find((one) => one === word.slice(0, Math.max(0, colon)));
  if (key !== undefined) {
    const begun = word.slice(colon + 1).replace(/^"/, "").toLowerCase();
    const values = key === "state" ? STATE_WORDS : key === "before" || key === "after" ? [] : known[key];
    const found = values.filter((value) => value.toLowerCase().includes(begun) && value.toLowerCase() !== begun);
    return found.slice(0, MOST).map((value) => put(value, `${written(key, value)} `));
  }
  if (word === "") return [];
  const extreme = EXTREMES.find((one) => word.startsWith(`${one}:`));
  const begun = word.slice(extreme === undefined ? 0 : extreme.length + 1).toLowerCase();
  const keys = extreme === undefined ? [...KEYS, ...EXTREMES].filter((one) => one.startsWith(begun)) : [];
  const found = known.metric.filter((one) => one.toLowerCase().includes(begun));
  const metrics = found.map((one) => comparison(one, extreme));
  return [...keys.map((one) => put(`${one}:`, `${one}:`)), ...metrics.map((one) => put(one, `${one} `))].slice(0, MOST);
}

/** The beginning of a comparison: the smallest value is good where it is small. */
function comparison(metric: string, extreme: (typeof EXTREMES)[number] | undefined): string {
  return `${extreme === undefined ? "" : `${extreme}:`}${metric} ${extreme === "min" ? "<" : ">"}`;
}
