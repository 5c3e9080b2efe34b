import { useQuery } from "@tanstack/react-query";

import { isFinal } from "../lib/states";
import { ApiError, client, unwrap } from "./client";
import type { MetricsSource } from "./metrics";
import type { SharedRun } from "./types";

/** How often a run is asked for that goes on, in milliseconds: whoever has a link has no stream. */
const POLL_MS = 15_000;

/** The run of a public link; it is asked for until it has ended, or the link opens no more. */
export function useSharedRun(token: string) {
  return useQuery({
    queryKey: ["shared", token, "self"],
    queryFn: () => unwrap(client.GET("/api/v1/shared/{token}", { params: { path: { token } } })),
    refetchInterval: ({ state: { data, error } }) => (
      isNotThere(error) || (data !== undefined && isFinal(data.state)) ? false : POLL_MS
    ),
  });
}

/** The series of a public link's run. */
export function metricsOfShared(token: string, run: SharedRun): MetricsSource {
  const over = isFinal(run.state);
  return {
    key: ["shared", token, "metrics"],
    version: over ? 1 : "live",
    over,
    pollMs: POLL_MS,
    topic: null,
    read: (query, signal) => (
      unwrap(client.GET("/api/v1/shared/{token}/metrics", { params: { path: { token }, query }, signal }))
    ),
  };
}

/** Whether an error says that a link opens nothing, or nothing any more. */
export function isNotThere(error: unknown): boolean {
  return error instanceof ApiError && error.status === 404;
}
