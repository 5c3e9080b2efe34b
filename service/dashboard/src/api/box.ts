import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";

import { refresh } from "./changes";
import { client, unwrap } from "./client";
import { POLL_MS, useInterval } from "./live";
import { useFollow } from "./stream";

const NODES = { queryKey: ["nodes"], queryFn: () => unwrap(client.GET("/api/v1/nodes")) };

/** What needs attention; the viewer's own failures among it. */
export const ATTENTION = { queryKey: ["attention"], queryFn: () => unwrap(client.GET("/api/v1/attention")) };

export function useNodes() {
  useFollow("nodes");
  return useQuery({ ...NODES, refetchInterval: useInterval(POLL_MS) });
}

/** The nodes as they were last read, for what seldom changes: nothing is asked again for that. */
export function useKnownNodes() {
  return useQuery({ ...NODES, staleTime: Infinity });
}

export function useQueue() {
  useFollow("queue");
  return useQuery({
    queryKey: ["queue"],
    queryFn: () => unwrap(client.GET("/api/v1/queue")),
    refetchInterval: useInterval(POLL_MS),
  });
}

/** Who has had the devices in the last hours, has them, and is expected to get them. */
export function useTimeline(hours: number) {
  useFollow("jobs");
  useFollow("nodes");
  return useQuery({
    queryKey: ["timeline", hours],
    queryFn: () => unwrap(client.GET("/api/v1/nodes/timeline", { params: { query: { hours } } })),
    refetchInterval: useInterval(2 * POLL_MS),
    placeholderData: keepPreviousData,
  });
}

/** How busy the devices were in the last hours; the longer the time, the less of it is new. */
export function useUtilization(hours: number) {
  return useQuery({
    queryKey: ["utilization", hours],
    queryFn: () => unwrap(client.GET("/api/v1/nodes/utilization", { params: { query: { hours } } })),
    refetchInterval: useInterval(Math.max(hours, 2) * POLL_MS),
    placeholderData: keepPreviousData,
  });
}

export function useAttention() {
  return useQuery({ ...ATTENTION, refetchInterval: useInterval(2 * POLL_MS) });
}

/** Stops new jobs from starting on a node, with a word to those who wait for it. */
export function useDrain() {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: ({ name, message, stopJobs }: { name: string; message: string; stopJobs: boolean }) => {
      const params = { path: { name }, query: { stop_jobs: stopJobs } };
      return unwrap(client.POST("/api/v1/nodes/{name}/drain", { params, body: { message } }));
    },
    onSettled: refresh(cache, ["nodes"]),
  });
}

/** Lets jobs start on a drained node again. */
export function useResume() {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: (name: string) => unwrap(client.POST("/api/v1/nodes/{name}/resume", { params: { path: { name } } })),
    onSettled: refresh(cache, ["nodes"]),
  });
}
