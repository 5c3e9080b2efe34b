import { keepPreviousData, useQuery, useQueryClient } from "@tanstack/react-query";

import { BUDGET, compact, type Detail, type Range } from "../lib/buckets";
import { type Axis, mergeSeries } from "../lib/series";
import { isFinal } from "../lib/states";
import { client, unwrap } from "./client";
import { POLL_MS } from "./live";
import { useFollow, useStreaming } from "./stream";
import type { Job, Metrics } from "./types";

interface MetricsQuery {
  axis: Axis;
  buckets: number;
  since?: string;
  start?: number;
  end?: number;
}

/** Where the series of one job come from: the job itself, or a public link to it. */
export interface MetricsSource {
  /** How the cache's keys begin; of a job as the stream's events expect it. */
  key: readonly [string, string, "metrics"];
  /** Changes when all is to be read anew. */
  version: number | "live";
  over: boolean;
  /** How often newer points are asked for while no stream brings them, in milliseconds. */
  pollMs: number;
  /** Topic of the stream that brings them, before the place from where on; null: none does. */
  topic: string | null;
  read: (query: MetricsQuery, signal: AbortSignal) => Promise<unknown>;
}

/** The series of a job for whoever may read it. */
export function metricsOf(job: Job): MetricsSource {
  return {
    key: ["job", job.id, "metrics"],
    version: isFinal(job.state) ? job.version : "live",
    over: isFinal(job.state),
    pollMs: POLL_MS,
    topic: `metrics:${job.id}`,
    read: (query, signal) => (
      unwrap(client.GET("/api/v1/jobs/{job_id}/metrics", { params: { path: { job_id: job.id }, query }, signal }))
    ),
  };
}

/** All series of a job. */
export interface JobMetrics extends Metrics {
  /** Grows when they are read anew rather than appended to. */
  generation: number;
  /** `cursor` of the answer from which on the stream brings what follows. */
  joined: string;
}

/**
 * All series of a job. While it runs the stream brings newer points, or they are asked for; when a new attempt shadows
 * old points the answer holds all anew.
 */
export function useMetrics(source: MetricsSource, axis: Axis) {
  const cache = useQueryClient();
  const streaming = useStreaming() && source.topic !== null;
  const queryKey = [...source.key, axis, source.version];
  const query = useQuery({
    queryKey,
    queryFn: ({ signal }) => fetchMetrics(source, axis, cache.getQueryData<JobMetrics>(queryKey), signal),
    // The chain of the stream's events shows by itself where one is missing.
    refetchInterval: streaming || source.over ? false : source.pollMs,
    placeholderData: keepPreviousData,
  });
  const { data, isPlaceholderData } = query;
  const follows = source.topic !== null && data && !isPlaceholderData && !source.over;
  useFollow(follows ? `${source.topic}:${data.joined}` : null);
  return query;
}

async function fetchMetrics(
  source: MetricsSource, axis: Axis, known: JobMetrics | undefined, signal: AbortSignal,
): Promise<JobMetrics> {
  const fresh = await readMetrics(source, { axis, ...(known && { since: known.cursor }) }, signal);
  const joined = fresh.cursor;
  if (known === undefined || fresh.reset) return { ...fresh, joined, generation: (known?.generation ?? 0) + 1 };
  const series = mergeSeries(known.series, fresh.series).map((one) => compact(one, axis));
  return { ...fresh, series, joined, generation: known.generation };
}

async function readMetrics(
  source: MetricsSource, query: Omit<MetricsQuery, "buckets">, signal: AbortSignal,
): Promise<Metrics> {
  // The client's types lose that points are triples.
  return await source.read({ buckets: BUDGET, ...query }, signal) as Metrics;
}

/** A part of a job's series, as closely as a chart can show it; the part before stays until it is here. */
export function useDetail(source: MetricsSource, axis: Axis, range: Range | null, generation: number) {
  return useQuery({
    queryKey: ["metrics-detail", ...source.key, axis, range, generation],
    queryFn: async ({ signal }): Promise<Detail | null> => {
      if (range === null) return null;
      return { range, series: (await readMetrics(source, { axis, ...range }, signal)).series };
    },
    enabled: range !== null,
    staleTime: Infinity,
    placeholderData: keepPreviousData,
  });
}
