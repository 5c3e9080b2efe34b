import type { Facet } from "../api/types";
import type { JobFilters } from "./jobQuery";
import type { Order } from "./orders";
import type { Grouping } from "./search";
import { FINAL, type JobState, statesOf } from "./states";

/** A part of the list: its jobs are read in one order, by their places in it. */
export interface Section {
  key: string;
  title: string;
  count: number;
  query: JobFilters & { trials?: boolean; order: Order | "queue" };
}

/** Jobs by state. */
export type Counts = Partial<Record<string, number>>;

function sum(counts: Counts, states: readonly JobState[]): number {
  return states.reduce((all, state) => all + (counts[state] ?? 0), 0);
}

/** What runs, then what waits by its place unless a column says otherwise, then what has ended; no empty parts. */
export function byState(counts: Counts, filters: JobFilters, order: Order): Section[] {
  const queue = order === "newest" || order === "oldest" ? "queue" : order;
  const asked = (states: readonly JobState[]) => states.filter((state) => filters.state?.includes(state) ?? true);
  const part = (key: string, title: string, all: readonly JobState[], by: Section["query"]["order"]): Section => {
    const states = asked(all);
    return { key, title, count: sum(counts, states), query: { ...filters, state: states, order: by } };
  };
  return [
    part("running", "Running", statesOf("active"), order),
    part("waiting", "Waiting", statesOf("waiting"), queue),
    part("ended", "Ended", FINAL, order),
  ].filter(({ count }) => count > 0);
}

/** A part for each user, project, sweep or tag. */
export function byFacet(facets: readonly Facet[], by: Grouping, filters: JobFilters, order: Order): Section[] {
  return facets.map(({ value, title, states }) => ({
    key: `${by}:${value}`,
    title: title === "" ? `No ${by}` : by === "sweep" ? `${value} ${title}` : title,
    count: sum(states, Object.keys(states) as JobState[]),
    query: { ...filters, ...narrowed(by, value), order },
  }));
}

function narrowed(by: Grouping, value: string): Partial<Section["query"]> {
  if (by === "sweep") return value === "" ? { trials: false } : { group: value };
  return by === "tag" ? { tag: [value] } : { [by]: value };
}

/** A line of the list: the head of a part, or the job at a place of it. */
export type Line = { kind: "head"; section: Section } | { kind: "job"; section: Section; place: number };

/** How many lines there are: a head for each part, and the jobs of those that are open. */
export function lineCount(sections: readonly Section[], closed: ReadonlySet<string>): number {
  return sections.reduce((all, { key, count }) => all + 1 + (closed.has(key) ? 0 : count), 0);
}

/** The line at a place of the whole list. */
export function lineAt(sections: readonly Section[], closed: ReadonlySet<string>, index: number): Line | null {
  let left = index;
  for (const section of sections) {
    if (left === 0) return { kind: "head", section };
    const jobs = closed.has(section.key) ? 0 : section.count;
    if (left <= jobs) return { kind: "job", section, place: left - 1 };
    left -= 1 + jobs;
  }
  return null;
}
