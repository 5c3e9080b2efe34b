import { keepPreviousData, type QueryClient, useMutation, useQueries, useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback, useMemo, useRef, useState } from "react";

import { forEach } from "../lib/bulk";
import type { JobFilters } from "../lib/jobQuery";
import type { Grouping } from "../lib/search";
import { behind, type End, identityOf, MOST, type Section, withFollowing } from "../lib/sections";
import { refresh } from "./changes";
import { client, explain, unwrap } from "./client";
import { rerun } from "./jobs";
import { POLL_MS, useInterval } from "./live";
import { useFollow } from "./stream";
import type { Job } from "./types";

/** Jobs that are read at once. */
export const PAGE = 100;
const FACETS_MS = 30_000;
const NAMES_MS = 300_000;
/** Pages out of view are forgotten after so long: of many that are scrolled through few are held. */
const KEPT_MS = 15_000;

const countsQuery = ({ user, project, tag, group, q, metric, before, after }: JobFilters) => {
  const words = { ...(user && { user }), ...(project && { project }), ...(group && { group }), ...(q && { q }) };
  const bounds = { ...(before && { before }), ...(after && { after }) };
  const query = { ...words, ...bounds, ...(tag && { tag }), ...(metric && { metric }) };
  return {
    queryKey: ["jobs", "counts", query],
    queryFn: () => unwrap(client.GET("/api/v1/jobs/counts", { params: { query: { ...query, most: MOST } } })),
  };
};

/** How many jobs pass, by state, whichever state is asked for. */
export function useCounts(filters: JobFilters) {
  useFollow("jobs");
  return useQuery({
    ...countsQuery(filters),
    refetchInterval: useInterval(POLL_MS),
    placeholderData: keepPreviousData,
  });
}

/** The parts of the list, each with those that follow it, and a way to tell with which job a full part ends. */
export function useFollowing(sections: readonly Section[]) {
  const cache = useQueryClient();
  const [ends, setEnds] = useState<ReadonlyMap<string, End>>(new Map());
  const told = useRef(new Map<string, string>());
  const tell = useCallback(async ({ query }: Section, last: string) => {
    const identity = identityOf(query);
    if (told.current.get(identity) === last) return;
    told.current.set(identity, last);
    try {
      const counts = await cache.query({ ...countsQuery(behind(query, last)), staleTime: Infinity });
      // Another job may have become the last one meanwhile.
      if (told.current.get(identity) === last) setEnds((known) => new Map(known).set(identity, { last, counts }));
    } catch {
      // Told again with the next page that is read.
      if (told.current.get(identity) === last) told.current.delete(identity);
    }
  }, [cache]);
  return { parts: useMemo(() => withFollowing(sections, ends), [sections, ends]), tell };
}

const facetsQuery = (by: Grouping, query: JobFilters) => ({
  queryFn: () => unwrap(client.GET("/api/v1/jobs/facets", { params: { query: { ...query, by } } })),
});

/** The users, projects, sweeps or tags of the jobs that pass. */
export function useFacets(by: Grouping | undefined, filters: JobFilters) {
  return useQuery({
    queryKey: ["facets", by, filters],
    ...facetsQuery(by ?? "user", filters),
    enabled: by !== undefined,
    refetchInterval: FACETS_MS,
    placeholderData: (before, query) => (query?.queryKey[1] === by ? before : undefined),
  });
}

/** Names that jobs have, for a search that is being typed. */
export function useNames(by: Grouping, enabled: boolean): readonly string[] {
  const found = useQuery({ queryKey: ["facets", by, {}], ...facetsQuery(by, {}), enabled, staleTime: NAMES_MS });
  const names = (found.data ?? []).map(({ value, title }) => (by === "sweep" ? title : value));
  return [...new Set(names)].filter((name) => name !== "");
}

/** The last page of a part that can be scrolled to. */
export const lastPage = ({ count }: Section) => Math.floor(Math.max(count - 1, 0) / PAGE);

/** A page of a part of the list. */
export interface PageOf {
  section: Section;
  page: number;
}

const pageKey = ({ section, page }: PageOf) => ["jobs", "list", { ...section.query, limit: PAGE, offset: page * PAGE }];

function readPage({ section, page }: PageOf) {
  const query = { ...section.query, limit: PAGE, offset: page * PAGE };
  return unwrap(client.GET("/api/v1/jobs", { params: { query } }));
}

/** The jobs of the pages in view, by part and place, and by part where the list goes on after its last page. */
export function usePages(pages: readonly PageOf[]) {
  const everyMs = useInterval(POLL_MS);
  const found = useQueries({
    queries: pages.map((one) => ({
      queryKey: pageKey(one), queryFn: () => readPage(one), refetchInterval: everyMs, staleTime: 2_000, gcTime: KEPT_MS,
    })),
  });
  const jobs = new Map<string, Job>();
  const following = new Map<string, string>();
  pages.forEach(({ section, page }, index) => {
    found[index]?.data?.items.forEach((job, at) => jobs.set(`${section.key} ${page * PAGE + at}`, job));
    const next = found[index]?.data?.next;
    if (next != null && page === lastPage(section)) following.set(section.key, next);
  });
  return { jobs, following, error: found.find(({ error }) => error !== null)?.error ?? null };
}

/** A place of a part, and the job that was there: it may have moved since. */
export interface Place {
  job?: string;
  place: number;
}

/** At most so many jobs from one place of a part to another, read where they have not been. */
export async function jobsBetween(
  cache: QueryClient, section: Section, one: Place, other: Place, most: number,
): Promise<Job[]> {
  const first = Math.min(one.place, other.place);
  const last = Math.min(Math.max(one.place, other.place), first + most - 1);
  const pages = Array.from(
    { length: Math.floor(last / PAGE) - Math.floor(first / PAGE) + 1 }, (_, index) => Math.floor(first / PAGE) + index,
  );
  const read = await Promise.all(pages.map(async (page) => {
    const { items } = await cache.query({
      queryKey: pageKey({ section, page }), queryFn: () => readPage({ section, page }), staleTime: 60_000,
    });
    return items.map((job, at) => ({ job, place: page * PAGE + at }));
  }));
  const all = read.flat();
  const now = ({ job, place }: Place) => all.find(({ job: { id } }) => id === job)?.place ?? place;
  const [from, to] = [now(one), now(other)].sort((a, b) => a - b) as [number, number];
  return all.filter(({ place }) => place >= from && place <= Math.min(to, from + most - 1)).map(({ job }) => job);
}

const ofJob = (id: string) => ({ path: { job_id: id } });

const change = (job: Job, body: { tags?: string[]; priority?: Job["priority"] }) =>
  unwrap(client.PATCH("/api/v1/jobs/{job_id}", {
    params: { ...ofJob(job.id), header: { "if-match": `"${job.version}"` } }, body,
  }));

/** Changes a job as it is now, which may be another version than the one that is shown. */
async function changed(job: Job, how: (now: Job) => { tags?: string[]; priority?: Job["priority"] }): Promise<Job> {
  const now = await unwrap(client.GET("/api/v1/jobs/{job_id}", { params: ofJob(job.id) }));
  await change(now, how(now));
  return now;
}

/** What can be done to several jobs; each gives the job as it was before, or the one that it has made. */
export const ACTS = {
  cancel: (job: Job) => unwrap(client.POST("/api/v1/jobs/{job_id}/cancel", { params: ofJob(job.id) })),
  rerun: (job: Job) => rerun({ job: job.id, from: null, carry: false }),
  tag: (tag: string) => (job: Job) => changed(job, ({ tags }) => ({ tags: [...new Set([...tags, tag])] })),
  priority: (priority: Job["priority"]) => (job: Job) => changed(job, () => ({ priority })),
  restore: (part: "tags" | "priority") => (job: Job) => changed(job, () => ({ [part]: job[part] })),
};

/** Does something to each of several jobs, and reads the lists anew. */
export function useBulk() {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: ({ jobs, act }: { jobs: readonly Job[]; act: (job: Job) => Promise<Job> }) => (
      forEach(jobs, act, explain)
    ),
    onSettled: refresh(cache, ["job", "jobs", "facets"]),
  });
}
