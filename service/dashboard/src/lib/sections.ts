import { t } from "@lingui/core/macro";

import type { Facet } from "../api/types";
import type { JobFilters } from "./jobQuery";
import type { Order } from "./orders";
import type { Grouping } from "./search";
import { FINAL, type JobState, statesOf } from "./states";

/** A part of the list: its jobs are read in one order, by their places in it. */
export interface Section {
  key: string;
  title: string;
  /** Jobs that can be scrolled through. */
  count: number;
  /** There are more, or may be. */
  more: boolean;
  query: JobFilters & { trials?: boolean; order: Order | "queue" };
}

/** Jobs by state, and the states of which there may be more. */
export interface Counts {
  states: Partial<Record<string, number>>;
  more?: readonly string[];
}

/** Jobs of a part that can be scrolled through; more than the service passes over are not asked for. */
export const MOST = 20_000;

function counted({ states: counts, more = [] }: Counts, states: readonly string[]): Pick<Section, "count" | "more"> {
  const all = states.reduce((before, state) => before + (counts[state] ?? 0), 0);
  return { count: Math.min(all, MOST), more: all > MOST || states.some((state) => more.includes(state)) };
}

/** What runs, then what waits by its place unless a column says otherwise, then what has ended; no empty parts. */
export function byState(counts: Counts, filters: JobFilters, order: Order): Section[] {
  const queue = order === "newest" || order === "oldest" ? "queue" : order;
  const asked = (states: readonly JobState[]) => states.filter((state) => filters.state?.includes(state) ?? true);
  const part = (key: string, title: string, all: readonly JobState[], by: Section["query"]["order"]): Section => {
    const states = asked(all);
    return { key, title, ...counted(counts, states), query: { ...filters, state: states, order: by } };
  };
  return [
    part("running", t`Running`, statesOf("active"), order),
    part("waiting", t`Waiting`, statesOf("waiting"), queue),
    part("ended", t({ message: "Ended", context: "jobs" }), FINAL, order),
  ].filter(({ count, more }) => count > 0 || more);
}

const NONE: Readonly<Record<Grouping, string>> = {
  user: t`No user`, project: t`No project`, sweep: t`No sweep`, tag: t`No tag`,
};

/** A part for each user, project, sweep or tag. */
export function byFacet(facets: readonly Facet[], by: Grouping, filters: JobFilters, order: Order): Section[] {
  return facets.map(({ value, title, states, more }) => ({
    key: `${by}:${value}`,
    title: title === "" ? NONE[by] : by === "sweep" ? `${value} ${title}` : title,
    ...counted({ states, more: more ? Object.keys(states) : [] }, Object.keys(states)),
    query: { ...filters, ...narrowed(by, value), order },
  }));
}

function narrowed(by: Grouping, value: string): Partial<Section["query"]> {
  if (by === "sweep") return value === "" ? { trials: false } : { group: value };
  return by === "tag" ? { tag: [value] } : { [by]: value };
}

/** A line of the list: the head of a part, the job at a place of it, or what leads on to those that are left out. */
export type Line =
  { kind: "head"; section: Section } | { kind: "job"; section: Section; place: number } | { kind: "more"; section: Section };

const linesBelow = ({ key, count, more }: Section, closed: ReadonlySet<string>) => (
  closed.has(key) ? 0 : count + (more ? 1 : 0)
);

/** How many lines there are: a head for each part, and those below it if it is open. */
export function lineCount(sections: readonly Section[], closed: ReadonlySet<string>): number {
  return sections.reduce((all, section) => all + 1 + linesBelow(section, closed), 0);
}

/** The line at a place of the whole list. */
export function lineAt(sections: readonly Section[], closed: ReadonlySet<string>, index: number): Line | null {
  let left = index;
  for (const section of sections) {
    if (left === 0) return { kind: "head", section };
    const below = linesBelow(section, closed);
    if (left <= below) return left > section.count ? { kind: "more", section } : { kind: "job", section, place: left - 1 };
    left -= 1 + below;
  }
  return null;
}
