import { keepPreviousData, useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";

import { client, unwrap } from "./client";
import { POLL_MS, useInterval } from "./live";
import { useFollow } from "./stream";
import type { Group } from "./types";

/** Trials that are read at once; those of a larger sweep come page by page. */
export const TRIALS = 200;

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

/** Trials of a sweep, the best first where they can be compared. */
export function useTrials(sweep: Group, measure: Measure) {
  const best = sweep.metric === null ? {} : { best_first: true };
  const everyMs = useInterval(POLL_MS);
  return useInfiniteQuery({
    queryKey: ["sweep", sweep.id, "trials", measure, best, sweep.ended_at],
    queryFn: ({ pageParam: cursor }) => {
      const query = { ...measure, ...best, limit: TRIALS, ...(cursor !== null && { cursor }) };
      return unwrap(client.GET("/api/v1/groups/{group}/trials", { params: { path: { group: sweep.id }, query } }));
    },
    initialPageParam: null as string | null,
    getNextPageParam: (last) => last.next ?? null,
    refetchInterval: sweep.ended_at === null ? everyMs : false,
    placeholderData: keepPreviousData,
  });
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
    onSettled: () => Promise.all([
      cache.invalidateQueries({ queryKey: ["sweep"] }),
      cache.invalidateQueries({ queryKey: ["jobs"] }),
    ]),
  });
}
