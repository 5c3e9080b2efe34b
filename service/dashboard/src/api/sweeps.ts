import { keepPreviousData, useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useMemo } from "react";

import { refresh } from "./changes";
import { client, unwrap } from "./client";
import { POLL_MS, useInterval } from "./live";
import { useFollow } from "./stream";
import type { Group } from "./types";

/** Trials that are read at once, and so often at most. */
const TRIALS = 500;
const PAGES = 4;

/** What trials are compared by; empty: what the sweep says itself. */
export interface Measure {
  metric?: string;
  mode?: "min" | "max";
}

const ofGroup = (group: string) => ({ params: { path: { group } } });

/** A sweep with its best trial. */
export function useSweep(group: string, measure: Measure = {}) {
  const everyMs = useInterval(POLL_MS);
  useFollow("jobs");
  return useQuery({
    queryKey: ["sweep", group, "self", measure],
    queryFn: () => unwrap(client.GET("/api/v1/groups/{group}", { params: { path: { group }, query: measure } })),
    refetchInterval: ({ state }) => (state.data?.ended_at ? false : everyMs),
    placeholderData: keepPreviousData,
  });
}

/** Trials of a sweep, the best first where they can be compared; `more` of them are not read. */
export function useAllTrials(sweep: Group, { metric, mode }: { metric?: string | undefined; mode?: Measure["mode"] | undefined }) {
  const best = sweep.metric === null ? {} : { best_first: true };
  const measure = { ...(metric && { metric }), ...(mode && { mode }) };
  const everyMs = useInterval(POLL_MS);
  const { data, error, hasNextPage, isFetching, fetchNextPage } = useInfiniteQuery({
    queryKey: ["sweep", sweep.id, "trials", measure, best, sweep.ended_at],
    queryFn: ({ pageParam: cursor }) => {
      const query = { ...measure, ...best, limit: TRIALS, ...(cursor !== null && { cursor }) };
      return unwrap(client.GET("/api/v1/groups/{group}/trials", { params: { path: { group: sweep.id }, query } }));
    },
    initialPageParam: null as string | null,
    getNextPageParam: (last, pages) => (pages.length < PAGES ? last.next ?? null : null),
    refetchInterval: sweep.ended_at === null ? everyMs : false,
    placeholderData: keepPreviousData,
  });
  useEffect(() => {
    if (hasNextPage && !isFetching && error === null) void fetchNextPage();
  }, [hasNextPage, isFetching, error, fetchNextPage]);
  // Each once: one that does better meanwhile moves from a page to another that is read later.
  const trials = useMemo(() => (
    [...new Map(data?.pages.flatMap((page) => page.items).map((trial) => [trial.id, trial])).values()]
  ), [data]);
  return { trials, error, more: hasNextPage || data === undefined ? 0 : Math.max(0, sweep.size - trials.length) };
}

const CHANGES = {
  cancel: (id: string) => unwrap(client.POST("/api/v1/groups/{group}/cancel", ofGroup(id))),
  hold: (id: string) => unwrap(client.POST("/api/v1/groups/{group}/hold", ofGroup(id))),
  release: (id: string) => unwrap(client.POST("/api/v1/groups/{group}/release", ofGroup(id))),
  resume: (id: string) => unwrap(client.POST("/api/v1/groups/{group}/resume", ofGroup(id))),
};

/** Asks something of all trials at once. */
export function useSweepChange() {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: ({ id, change }: { id: string; change: keyof typeof CHANGES }) => CHANGES[change](id),
    onSettled: refresh(cache, ["sweep", "jobs"]),
  });
}
