import { keepPreviousData, useQueries, useQuery } from "@tanstack/react-query";

import { endsOf } from "../lib/ends";
import { parseRefs } from "../lib/runs";
import type { Axis } from "../lib/series";
import type { Range } from "../lib/buckets";
import { client, fetchText, unwrap } from "./client";
import { POLL_MS, useInterval } from "./live";
import { useFollow } from "./stream";
import type { CodeFile, Curves } from "./types";

/** Parts of a curve at a first look, and afterwards. */
const ROUGH_PARTS = 100;
const PARTS = 400;
/** Runs that are compared at most. */
export const MOST_RUNS = 200;

/** The jobs with these numbers or ids that the viewer may read, in the order they were asked for. */
export function useRuns(refs: string) {
  useFollow("jobs");
  return useQuery({
    queryKey: ["jobs", "refs", refs],
    queryFn: async () => {
      const query = { refs, limit: MOST_RUNS };
      const { items, next } = await unwrap(client.GET("/api/v1/jobs", { params: { query } }));
      const order = parseRefs(refs);
      const place = (job: { id: string; number: number }) => (
        order.findIndex((ref) => ref === job.id || ref === String(job.number))
      );
      return { next, items: items.toSorted((one, other) => place(one) - place(other)) };
    },
    enabled: refs !== "",
    refetchInterval: useInterval(POLL_MS),
    placeholderData: keepPreviousData,
  });
}

let last: Promise<unknown> = Promise.resolve();

/** Runs tasks one after the other: each of them has the service read millions of points. */
function oneAtATime<Result>(task: () => Promise<Result>): Promise<Result> {
  const mine = last.then(task, task);
  last = mine.catch(() => undefined);
  return mine;
}

interface Asked {
  /** Ids of jobs, with commas. */
  jobs: string;
  name: string;
  axis: Axis;
  /** The part that is shown, null for all. */
  range: Range | null;
  /** Changes when the jobs have reported. */
  version: string;
}

/** A metric of many jobs: at once some of its points, then what holds them all. */
export function useCurves({ jobs, name, axis, range, version }: Asked, enabled: boolean) {
  const read = (more: { parts: number; rough?: boolean }, signal: AbortSignal) => {
    const query = { jobs, names: [name], axis, ...more, ...range };
    return unwrap<Curves>(client.GET("/api/v1/metrics/curves", { params: { query }, signal }));
  };
  const rough = useQuery({
    queryKey: ["curves", "rough", jobs, name, axis],
    queryFn: ({ signal }) => read({ parts: ROUGH_PARTS, rough: true }, signal),
    enabled: enabled && range === null,
    staleTime: Infinity,
  });
  const exact = useQuery({
    queryKey: ["curves", "exact", jobs, name, axis, range, version],
    queryFn: ({ signal }): Promise<Curves> => oneAtATime(async () => {
      signal.throwIfAborted();
      return await read({ parts: PARTS }, signal);
    }),
    enabled: enabled && (range !== null || rough.data !== undefined),
    staleTime: Infinity,
    placeholderData: keepPreviousData,
  });
  return { data: exact.data ?? rough.data, error: exact.error ?? rough.error, isRough: exact.data === undefined };
}

/** Metrics whose ends are read at most. */
const MOST_ENDS = 200;

/** Smallest and largest values of metrics of many jobs, by their ids with commas; read anew with another `version`. */
export function useExtremes(jobs: string, names: readonly string[], version: string) {
  const query = { jobs, names: names.slice(0, MOST_ENDS) };
  return useQuery({
    queryKey: ["extremes", jobs, query.names, version],
    queryFn: ({ signal }) => unwrap(client.GET("/api/v1/metrics/extremes", { params: { query }, signal })),
    select: ({ extremes }) => endsOf(extremes),
    enabled: jobs !== "" && names.length > 0,
    staleTime: Infinity,
    placeholderData: keepPreviousData,
  });
}

/** The files that jobs were submitted with, in the order of the jobs. */
export function useCode(jobs: readonly string[]) {
  return useQueries({
    queries: jobs.map((id) => ({
      queryKey: ["code", id],
      queryFn: () => unwrap<CodeFile[]>(client.GET("/api/v1/jobs/{job_id}/code", { params: { path: { job_id: id } } })),
      staleTime: Infinity,
    })),
  });
}

/** What was installed for jobs, in the order of the jobs. */
export function useEnvironments(jobs: readonly string[]) {
  return useQueries({
    queries: jobs.map((id) => ({
      queryKey: ["job", id, "environment"],
      queryFn: () => unwrap(client.GET("/api/v1/jobs/{job_id}/environment", { params: { path: { job_id: id } } })),
    })),
  });
}

/** Larger files are downloaded, not shown. */
export const SHOWN_BYTES = 1024 * 1024;

/** The text of a file that a job was submitted with; null for none. */
export function useCodeText(job: string | null, file: CodeFile | null | undefined) {
  return useQuery({
    queryKey: ["code", "text", file?.sha256 ?? ""],
    queryFn: async () => {
      if (job === null || file == null) return "";
      return await fetchText(`/api/v1/jobs/${job}/code/${file.path.split("/").map(encodeURIComponent).join("/")}`);
    },
    enabled: file != null && file.size <= SHOWN_BYTES,
    staleTime: Infinity,
  });
}
