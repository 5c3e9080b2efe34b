import {
  keepPreviousData, useInfiniteQuery, useMutation, useQuery, useQueryClient,
} from "@tanstack/react-query";
import { useEffect, useState } from "react";

import { compact, type Detail, type Range } from "../lib/buckets";
import type { AskedCheckpoint } from "../lib/checkpoints";
import type { Edits } from "../lib/edits";
import { mergeSeries } from "../lib/series";
import { isFinal } from "../lib/states";
import { refresh } from "./changes";
import { client, unwrap } from "./client";
import { POLL_MS, TELEMETRY_MS, useInterval } from "./live";
import { useFollow } from "./stream";
import type { DryRun, Job, Metrics } from "./types";

const SLOW_MS = 15_000;
const TELEMETRY_BUCKETS = 500;

const ofJob = (id: string) => ({ params: { path: { job_id: id } } });

/** A job, followed also while the tab is hidden, since it names the tab. */
export function useJob(id: string) {
  const query = useQuery({
    queryKey: ["job", id, "self"],
    queryFn: () => unwrap(client.GET("/api/v1/jobs/{job_id}", ofJob(id))),
    refetchInterval: useInterval(POLL_MS),
  });
  useFollow(query.data === undefined ? null : `job:${query.data.id}`, true);
  return query;
}

/** A job that another one speaks of; known by its id, it need not be fresh. */
export function useMentioned(id: string) {
  return useQuery({
    queryKey: ["job", id, "mentioned"],
    queryFn: () => unwrap(client.GET("/api/v1/jobs/{job_id}", ofJob(id))),
    staleTime: SLOW_MS,
    refetchInterval: useInterval(SLOW_MS),
  });
}

/** What belongs to a job is asked for while it lives, and once more whenever the job itself has changed. */
function useLiveness(job: Job) {
  const everyMs = useInterval(POLL_MS);
  return { refetchInterval: isFinal(job.state) ? (false as const) : everyMs, placeholderData: keepPreviousData };
}

const versionKey = (job: Job) => (isFinal(job.state) ? job.version : "live");

export function useWhy(job: Job, enabled: boolean) {
  useFollow(enabled && job.state === "queued" ? "queue" : null);
  return useQuery({
    queryKey: ["job", job.id, "why", versionKey(job)],
    queryFn: () => unwrap(client.GET("/api/v1/jobs/{job_id}/why", ofJob(job.id))),
    enabled,
    ...useLiveness(job),
  });
}

/** What happened to a job, the oldest first, page by page. */
export function useEvents(job: Job) {
  const [wanted, setWanted] = useState(1);
  const { data, error, hasNextPage, isFetching, fetchNextPage } = useInfiniteQuery({
    queryKey: ["job", job.id, "events", versionKey(job)],
    queryFn: ({ pageParam: cursor }) => {
      const params = { path: { job_id: job.id }, query: cursor === null ? {} : { cursor } };
      return unwrap(client.GET("/api/v1/jobs/{job_id}/events", { params }));
    },
    initialPageParam: null as string | null,
    getNextPageParam: (last) => last.next ?? null,
    ...useLiveness(job),
  });
  const read = data?.pages.length ?? 0;
  // What happens meanwhile reads all pages anew, which ends the reading of a next one.
  useEffect(() => {
    if (read < wanted && hasNextPage && !isFetching && error === null) void fetchNextPage();
  }, [read, wanted, hasNextPage, isFetching, error, fetchNextPage]);
  return { pages: data?.pages, more: hasNextPage, readMore: () => setWanted(read + 1) };
}

/** Stacks of the newest attempt that has any, the newest first. */
export function useStacks(job: Job) {
  return useQuery({
    queryKey: ["job", job.id, "stacks", versionKey(job)],
    queryFn: () => unwrap(client.GET("/api/v1/jobs/{job_id}/stacks", ofJob(job.id))),
    ...useLiveness(job),
  });
}

/** How the start of each attempt went, the first one first. */
export function useStarts(job: Job) {
  return useQuery({
    queryKey: ["job", job.id, "starts", versionKey(job)],
    queryFn: () => unwrap(client.GET("/api/v1/jobs/{job_id}/timing", ofJob(job.id))),
    enabled: job.attempt > 0,
    ...useLiveness(job),
  });
}

/** What was installed for the newest attempt that has told. */
export function useEnvironment(job: Job) {
  const liveness = useLiveness(job);
  return useQuery({
    queryKey: ["job", job.id, "environment", versionKey(job)],
    queryFn: () => unwrap(client.GET("/api/v1/jobs/{job_id}/environment", ofJob(job.id))),
    enabled: job.attempt > 0,
    ...liveness,
    // No event tells that it has come.
    refetchInterval: ({ state }) => (
      !isFinal(job.state) && state.data?.environment === null ? POLL_MS : liveness.refetchInterval
    ),
  });
}

export function useAttempts(job: Job) {
  return useQuery({
    queryKey: ["job", job.id, "attempts", versionKey(job)],
    queryFn: () => unwrap(client.GET("/api/v1/jobs/{job_id}/attempts", ofJob(job.id))),
    ...useLiveness(job),
  });
}

/** Until when there are public links to a job. */
export function useSharedLinks(id: string) {
  return useQuery({
    queryKey: ["job", id, "link"],
    queryFn: () => unwrap(client.GET("/api/v1/jobs/{job_id}/link", ofJob(id))),
  });
}

export function useTelemetry(job: Job) {
  const cache = useQueryClient();
  const queryKey = ["job", job.id, "telemetry", versionKey(job)];
  return useQuery({
    queryKey,
    queryFn: async () => {
      const known = cache.getQueryData<Metrics>(queryKey);
      const fresh = await readTelemetry(job.id, known === undefined ? {} : { since: known.cursor });
      if (known === undefined) return fresh;
      return { ...fresh, series: mergeSeries(known.series, fresh.series).map((one) => compact(one, "time")) };
    },
    refetchInterval: isFinal(job.state) ? false : TELEMETRY_MS,
    placeholderData: keepPreviousData,
  });
}

async function readTelemetry(id: string, range: { since?: string } | Range): Promise<Metrics> {
  const params = { path: { job_id: id }, query: { buckets: TELEMETRY_BUCKETS, ...range } };
  // The client's types lose that points are triples.
  return await unwrap(client.GET("/api/v1/jobs/{job_id}/telemetry", { params })) as Metrics;
}

/** A part of a job's telemetry, as closely as a chart can show it; the part before stays until it is here. */
export function useTelemetryDetail(job: Job, range: Range | null) {
  return useQuery({
    queryKey: ["telemetry-detail", job.id, range],
    queryFn: async (): Promise<Detail | null> => (
      range === null ? null : { range, series: (await readTelemetry(job.id, range)).series }
    ),
    enabled: range !== null,
    staleTime: isFinal(job.state) ? Infinity : TELEMETRY_MS,
    placeholderData: keepPreviousData,
  });
}

export function useLogStreams(job: Job) {
  return useQuery({
    queryKey: ["job", job.id, "streams", versionKey(job)],
    queryFn: () => unwrap(client.GET("/api/v1/jobs/{job_id}/logs/streams", ofJob(job.id))),
    ...useLiveness(job),
  });
}

const readCheckpoints = (id: string) => unwrap(client.GET("/api/v1/jobs/{job_id}/checkpoints", ofJob(id)));

export function useCheckpoints(job: Job, enabled = true) {
  return useQuery({
    queryKey: ["job", job.id, "checkpoints", versionKey(job)],
    queryFn: () => readCheckpoints(job.id),
    enabled,
    ...useLiveness(job),
    refetchInterval: useInterval(isFinal(job.state) ? SLOW_MS : POLL_MS),
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
    ...useLiveness(job),
    refetchInterval: useInterval(isFinal(job.state) ? SLOW_MS : POLL_MS),
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
  /** Merged into the spec: null takes a field's default. */
  changes?: Record<string, unknown>;
}

/** Submits a job again. */
export async function rerun(again: Again): Promise<Job> {
  return await postRerun(again, false) as Job;
}

/** Submits a job again, or has it checked alone. */
export function postRerun({ job, from, carry, changes = {} }: Again, dryRun: boolean): Promise<Job | DryRun> {
  const params = { path: { job_id: job }, query: { dry_run: dryRun } };
  const body = { from_checkpoint: from, carry, changes };
  return unwrap(client.POST("/api/v1/jobs/{job_id}/rerun", { params, body }));
}

/** A change to a job; afterwards all that shows jobs is asked for again. */
function useChange<Input, Output>(change: (input: Input) => Promise<Output>) {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSettled: refresh(cache, ["job", "jobs"]),
  });
}

export const useCancel = () =>
  useChange((id: string) => unwrap(client.POST("/api/v1/jobs/{job_id}/cancel", ofJob(id))));
export const useRerun = () => useChange(rerun);
export const useDiscard = () =>
  useChange((id: string) => unwrap(client.POST("/api/v1/jobs/{job_id}/discard", ofJob(id))));
export const useBringOutputs = () =>
  useChange((id: string) => unwrap(client.POST("/api/v1/jobs/{job_id}/outputs/bring", ofJob(id))));
/** Changes a job as it is shown. */
export const useEdit = () =>
  useChange(({ job, edits }: { job: Job; edits: Edits }) => {
    const params = { ...ofJob(job.id).params, header: { "if-match": `"${job.version}"` } };
    return unwrap(client.PATCH("/api/v1/jobs/{job_id}", { params, body: edits }));
  });
export const useHold = () => useChange((id: string) => unwrap(client.POST("/api/v1/jobs/{job_id}/hold", ofJob(id))));
export const useRelease = () =>
  useChange((id: string) => unwrap(client.POST("/api/v1/jobs/{job_id}/release", ofJob(id))));
/** Asks for a checkpoint; what was there before tells when it has come. */
export const useCheckpointNow = () =>
  useChange(async (id: string): Promise<AskedCheckpoint> => {
    const before = await readCheckpoints(id);
    const { attempt, unsaved } = await unwrap(client.POST("/api/v1/jobs/{job_id}/checkpoint", ofJob(id)));
    return { before: before.map((one) => one.id), attempt, unsaved: unsaved ?? null };
  });
/** Makes a public link to a job. */
export const useShare = () =>
  useChange(({ id, lifetime }: { id: string; lifetime: string }) =>
    unwrap(client.POST("/api/v1/jobs/{job_id}/link", { ...ofJob(id), body: { expires_in: lifetime } })));
export const useRevokeLinks = () =>
  useChange((id: string) => unwrap(client.DELETE("/api/v1/jobs/{job_id}/link", ofJob(id))));
export const useDumpStacks = () =>
  useChange((id: string) => unwrap(client.POST("/api/v1/jobs/{job_id}/stacks", ofJob(id))));
export const useDeleteCheckpoint = () =>
  useChange((id: string) =>
    unwrap(client.DELETE("/api/v1/checkpoints/{checkpoint_id}", { params: { path: { checkpoint_id: id } } })));
