import {
  keepPreviousData, useInfiniteQuery, useMutation, useQuery, useQueryClient,
} from "@tanstack/react-query";

import { BUDGET, compact, type Detail, type Range } from "../lib/buckets";
import type { JobsSearch } from "../lib/search";
import { type Axis, mergeSeries } from "../lib/series";
import { isFinal, statesOf } from "../lib/states";
import { client, unwrap } from "./client";
import type { Job, Metrics } from "./types";

/** How often what moves is asked for again, in milliseconds; unchanged answers are 304 and cost nearly nothing. */
const LIVE_MS = 2_000;
const SLOW_MS = 15_000;
export const PAGE_SIZE = 50;

const ofJob = (id: string) => ({ params: { path: { job_id: id } } });

export function filtersOf(search: JobsSearch) {
  const { user, project, tag, q } = search;
  return { ...(user && { user }), ...(project && { project }), ...(tag && { tag: [tag] }), ...(q && { q }) };
}

/** Jobs that are no trials of a sweep; sweeps have rows of their own. */
export function useJobs(search: JobsSearch) {
  const states = search.tab === undefined ? [] : statesOf(search.tab);
  const query = {
    ...filtersOf(search),
    ...(states.length > 0 && { state: [...states] }),
    ...(search.cursor && { cursor: search.cursor }),
    trials: false,
    limit: PAGE_SIZE,
  };
  return useQuery({
    queryKey: ["jobs", "list", query],
    queryFn: () => unwrap(client.GET("/api/v1/jobs", { params: { query } })),
    refetchInterval: LIVE_MS,
    placeholderData: keepPreviousData,
  });
}

export function useCounts(search: JobsSearch) {
  const query = filtersOf(search);
  return useQuery({
    queryKey: ["jobs", "counts", query],
    queryFn: () => unwrap(client.GET("/api/v1/jobs/counts", { params: { query } })),
    refetchInterval: LIVE_MS,
    placeholderData: keepPreviousData,
  });
}

export function useJob(id: string) {
  return useQuery({
    queryKey: ["job", id, "self"],
    queryFn: () => unwrap(client.GET("/api/v1/jobs/{job_id}", ofJob(id))),
    refetchInterval: (query) => (query.state.data && isFinal(query.state.data.state) ? SLOW_MS : LIVE_MS),
  });
}

/** A job that another one speaks of; known by its id, it need not be fresh. */
export function useMentioned(id: string) {
  return useQuery({
    queryKey: ["job", id, "mentioned"],
    queryFn: () => unwrap(client.GET("/api/v1/jobs/{job_id}", ofJob(id))),
    staleTime: SLOW_MS,
    refetchInterval: SLOW_MS,
  });
}

/** What belongs to a job is asked for while it lives, and once more whenever the job itself has changed. */
function liveness(job: Job) {
  return { refetchInterval: isFinal(job.state) ? (false as const) : LIVE_MS, placeholderData: keepPreviousData };
}

const versionKey = (job: Job) => (isFinal(job.state) ? job.version : "live");

export function useWhy(job: Job, enabled: boolean) {
  return useQuery({
    queryKey: ["job", job.id, "why", versionKey(job)],
    queryFn: () => unwrap(client.GET("/api/v1/jobs/{job_id}/why", ofJob(job.id))),
    enabled,
    ...liveness(job),
  });
}

/** What happened to a job, the oldest first, page by page. */
export function useEvents(job: Job) {
  return useInfiniteQuery({
    queryKey: ["job", job.id, "events", versionKey(job)],
    queryFn: ({ pageParam: cursor }) => {
      const params = { path: { job_id: job.id }, query: cursor === null ? {} : { cursor } };
      return unwrap(client.GET("/api/v1/jobs/{job_id}/events", { params }));
    },
    initialPageParam: null as string | null,
    getNextPageParam: (last) => last.next ?? null,
    ...liveness(job),
  });
}

/** Stacks of the newest attempt that has any, the newest first. */
export function useStacks(job: Job) {
  return useQuery({
    queryKey: ["job", job.id, "stacks", versionKey(job)],
    queryFn: () => unwrap(client.GET("/api/v1/jobs/{job_id}/stacks", ofJob(job.id))),
    ...liveness(job),
  });
}

export function useAttempts(job: Job) {
  return useQuery({
    queryKey: ["job", job.id, "attempts", versionKey(job)],
    queryFn: () => unwrap(client.GET("/api/v1/jobs/{job_id}/attempts", ofJob(job.id))),
    ...liveness(job),
  });
}

/** All series of a job; `generation` grows when they are read anew rather than appended to. */
export interface JobMetrics extends Metrics {
  generation: number;
}

/**
 * All series of a job. While it runs only newer points are asked for; when a new attempt shadows old points the answer
 * holds all anew.
 */
export function useMetrics(job: Job, axis: Axis) {
  const cache = useQueryClient();
  const queryKey = ["job", job.id, "metrics", axis, versionKey(job)];
  return useQuery({
    queryKey,
    queryFn: ({ signal }) => fetchMetrics(job.id, axis, cache.getQueryData<JobMetrics>(queryKey), signal),
    ...liveness(job),
  });
}

async function fetchMetrics(
  id: string, axis: Axis, known: JobMetrics | undefined, signal: AbortSignal,
): Promise<JobMetrics> {
  const fresh = await readMetrics(id, { axis, ...(known && { since: known.cursor }) }, signal);
  if (known === undefined || fresh.reset) return { ...fresh, generation: (known?.generation ?? 0) + 1 };
  const series = mergeSeries(known.series, fresh.series).map((one) => compact(one, axis));
  return { ...fresh, series, generation: known.generation };
}

async function readMetrics(
  id: string, query: { axis: Axis; since?: string; start?: number; end?: number }, signal: AbortSignal,
): Promise<Metrics> {
  const params = { path: { job_id: id }, query: { buckets: BUDGET, ...query } };
  // The client's types lose that points are triples.
  return await unwrap(client.GET("/api/v1/jobs/{job_id}/metrics", { params, signal })) as Metrics;
}

/** A part of a job's series, as closely as a chart can show it; the part before stays until it is here. */
export function useDetail(job: Job, axis: Axis, range: Range | null, generation: number) {
  return useQuery({
    queryKey: ["metrics-detail", job.id, axis, range, generation],
    queryFn: async ({ signal }): Promise<Detail | null> => {
      if (range === null) return null;
      return { range, series: (await readMetrics(job.id, { axis, ...range }, signal)).series };
    },
    enabled: range !== null,
    staleTime: Infinity,
    placeholderData: keepPreviousData,
  });
}

export function useTelemetry(job: Job) {
  const query = { max_points: 600 };
  return useQuery({
    queryKey: ["job", job.id, "telemetry", versionKey(job)],
    queryFn: async () => {
      const params = { path: { job_id: job.id }, query };
      return await unwrap(client.GET("/api/v1/jobs/{job_id}/telemetry", { params })) as Metrics;
    },
    ...liveness(job),
  });
}

export function useLogStreams(job: Job) {
  return useQuery({
    queryKey: ["job", job.id, "streams", versionKey(job)],
    queryFn: () => unwrap(client.GET("/api/v1/jobs/{job_id}/logs/streams", ofJob(job.id))),
    ...liveness(job),
  });
}

export function useCheckpoints(job: Job) {
  return useQuery({
    queryKey: ["job", job.id, "checkpoints", versionKey(job)],
    queryFn: () => unwrap(client.GET("/api/v1/jobs/{job_id}/checkpoints", ofJob(job.id))),
    ...liveness(job),
    refetchInterval: isFinal(job.state) ? SLOW_MS : LIVE_MS,
  });
}

/** All files that the job has written, those too that are not here or that it has removed. */
export function useOutputs(job: Job) {
  return useQuery({
    queryKey: ["job", job.id, "outputs", versionKey(job)],
    queryFn: () => {
      const params = { path: { job_id: job.id }, query: { all: true } };
      return unwrap(client.GET("/api/v1/jobs/{job_id}/outputs", { params }));
    },
    ...liveness(job),
    refetchInterval: isFinal(job.state) ? SLOW_MS : LIVE_MS,
  });
}

/** The address of a file, each part of its path quoted. */
export function fileUrl(...parts: string[]): string {
  return `/api/v1/${parts.flatMap((part) => part.split("/")).map(encodeURIComponent).join("/")}`;
}

export interface Again {
  job: string;
  /** A checkpoint's id, `latest` or `best`; null for a start without one. */
  from: string | null;
  /** Whether a start without a checkpoint finds the files that the job has left. */
  carry: boolean;
}

/** A change to a job; afterwards all that shows jobs is asked for again. */
function useChange<Input, Output>(change: (input: Input) => Promise<Output>) {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSettled: () => Promise.all([
      cache.invalidateQueries({ queryKey: ["job"] }),
      cache.invalidateQueries({ queryKey: ["jobs"] }),
    ]),
  });
}

export const useCancel = () =>
  useChange((id: string) => unwrap(client.POST("/api/v1/jobs/{job_id}/cancel", ofJob(id))));
export const useRerun = () =>
  useChange(({ job, from, carry }: Again) => {
    const body = { from_checkpoint: from, carry, changes: {} };
    return unwrap(client.POST("/api/v1/jobs/{job_id}/rerun", { ...ofJob(job), body }));
  });
export const useDiscard = () =>
  useChange((id: string) => unwrap(client.POST("/api/v1/jobs/{job_id}/discard", ofJob(id))));
export const useBringOutputs = () =>
  useChange((id: string) => unwrap(client.POST("/api/v1/jobs/{job_id}/outputs/bring", ofJob(id))));
export const useHold = () => useChange((id: string) => unwrap(client.POST("/api/v1/jobs/{job_id}/hold", ofJob(id))));
export const useRelease = () =>
  useChange((id: string) => unwrap(client.POST("/api/v1/jobs/{job_id}/release", ofJob(id))));
export const useCheckpointNow = () =>
  useChange((id: string) => unwrap(client.POST("/api/v1/jobs/{job_id}/checkpoint", ofJob(id))));
export const useDumpStacks = () =>
  useChange((id: string) => unwrap(client.POST("/api/v1/jobs/{job_id}/stacks", ofJob(id))));
export const useDeleteCheckpoint = () =>
  useChange((id: string) =>
    unwrap(client.DELETE("/api/v1/checkpoints/{checkpoint_id}", { params: { path: { checkpoint_id: id } } })));
