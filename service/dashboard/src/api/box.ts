import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";

import { client, unwrap } from "./client";
import type { Metrics } from "./types";

const LIVE_MS = 2_000;

export function useNodes() {
  return useQuery({
    queryKey: ["nodes"],
    queryFn: () => unwrap(client.GET("/api/v1/nodes")),
    refetchInterval: LIVE_MS,
  });
}

export function useQueue() {
  return useQuery({
    queryKey: ["queue"],
    queryFn: () => unwrap(client.GET("/api/v1/queue")),
    refetchInterval: LIVE_MS,
  });
}

export function useNodeTelemetry(name: string) {
  const params = { path: { name }, query: { max_points: 120 } };
  return useQuery({
    queryKey: ["nodes", name, "telemetry"],
    queryFn: async () => await unwrap(client.GET("/api/v1/nodes/{name}/telemetry", { params })) as Metrics,
    refetchInterval: 4_000,
  });
}

/** Stops new jobs from starting on a node, or lets them start again. */
export function useDrain() {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: ({ name, drain }: { name: string; drain: boolean }) => {
      const params = { path: { name } };
      return drain
        ? unwrap(client.POST("/api/v1/nodes/{name}/drain", { params }))
        : unwrap(client.POST("/api/v1/nodes/{name}/resume", { params }));
    },
    onSettled: () => cache.invalidateQueries({ queryKey: ["nodes"] }),
  });
}
