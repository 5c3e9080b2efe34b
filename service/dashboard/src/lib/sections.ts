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
  /** The part under whose head it goes on, and how many parts come before it there. */
  follows?: { key: string; parts: number };
  query: JobFilters & { trials?: boolean; order: Order | "queue" };
}

/** Jobs by state, and the states of which there may be more. */
export interface Counts {
  states: Partial<Record<string, number>>;
  more?: readonly string[];
}

/** Jobs of a part that can be scrolled through; more than the service passes over are not asked for. */
export const MOST = 20_000;

/** Parts under one head at most: browsers draw no higher boxes than some seventeen million pixels. */
const LONGEST = 25;

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

/** Whether the list goes on by itself behind a part: it is full, and jobs behind its last one can be counted. */
export function goesOn({ count, more, follows, query: { order, trials } }: Section): boolean {
  const counts = (order === "newest" || order === "oldest") && trials !== false;
  return more && count === MOST && counts && (follows?.parts ?? 0) + 1 < LONGEST;
}

/** What identifies the jobs of a part, whatever else is in the list. */
export const identityOf = (query: Section["query"]) => JSON.stringify(query);

/** Asks for the jobs behind the last one of a part, by its number. */
export function behind(query: Section["query"], last: string): Section["query"] {
  return query.order === "oldest" ? { ...query, after: Number(last) } : { ...query, before: Number(last) };
}

/** The last job of a part, by its number, and how many there are behind it. */
export interface End {
  last: string;
  counts: Counts;
}

/** The parts, each with those that follow it as far as `ends` tells of them, by the identity of what they follow. */
export function withFollowing(sections: readonly Section[], ends: ReadonlyMap<string, End>): Section[] {
  return sections.flatMap((section) => {
    const before: Section[] = [];
    let part = section;
    const endOf = ({ query }: Section) => ends.get(identityOf(query));
    for (let end = endOf(part); goesOn(part) && end !== undefined; end = endOf(part)) {
      before.push({ ...part, more: false });
      const query = behind(part.query, end.last);
      part = {
        key: `${section.key} +${before.length}`,
        title: section.title,
        follows: { key: section.key, parts: before.length },
        query,
        ...counted(end.counts, query.state ?? Object.keys(end.counts.states)),
      };
    }
    return [...before, part];
  });
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

const heads = ({ follows }: Section) => (follows === undefined ? 1 : 0);

const linesBelow = ({ key, follows, count, more }: Section, closed: ReadonlySet<string>) => (
  closed.has(follows?.key ?? key) ? 0 : count + (more ? 1 : 0)
);

/** How many lines there are: a head for each part, and those below it if it is open. */
export function lineCount(sections: readonly Section[], closed: ReadonlySet<string>): number {
  return sections.reduce((all, section) => all + heads(section) + linesBelow(section, closed), 0);
}

/** The line at a place of the whole list. */
export function lineAt(sections: readonly Section[], closed: ReadonlySet<string>, index: number): Line | null {
  let left = index;
  for (const section of sections) {
    if (left < heads(section)) return { kind: "head", section };
    left -= heads(section);
    const below = linesBelow(section, closed);
    if (left < below) return left < section.count ? { kind: "job", section, place: left } : { kind: "more", section };
    left -= below;
  }
  return null;
}

/**
 * Keys of rows by their jobs, whatever place these have, so that the focus and a click under way stay with them. A row
 * has its place as its key while its job is not read, or is in a row before it too: pages may be of different moments.
 */
export function rowKeys(lines: readonly (Line | null)[], jobs: ReadonlyMap<string, { id: string }>): string[] {
  const taken = new Set<string>();
  return lines.map((line) => {
    if (line?.kind !== "job") return "";
    const place = `${line.section.key} ${line.place}`;
    const job = jobs.get(place);
    const key = `${line.section.key} ${job?.id}`;
    if (job === undefined || taken.has(key)) return place;
    taken.add(key);
    return key;
  });
}
