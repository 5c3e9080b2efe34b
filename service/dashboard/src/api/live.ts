import { type QueryClient, useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";

import { listen } from "./events";
import type { Job } from "./types";

/** Follows what changes, and asks again for what it touches. */
export function useLive(enabled: boolean): void {
  const cache = useQueryClient();
  useEffect(() => {
    if (!enabled) return;
    const stop = new AbortController();
    listen(() => "/api/v1/stream", handlersOf(cache), stop.signal);
    return () => stop.abort();
  }, [cache, enabled]);
}

function handlersOf(cache: QueryClient): Record<string, (data: string) => void> {
  const again = (...names: string[]) => names.forEach((name) => void cache.invalidateQueries({ queryKey: [name] }));
  return {
    job: (data) => {
      const { id } = JSON.parse(data) as { id: string };
      void cache.invalidateQueries({ predicate: ({ queryKey }) => queryKey[0] === "job" && isOf(queryKey, id, cache) });
      again("jobs");
    },
    jobs: () => again("jobs", "queue", "sweep"),
    nodes: () => again("nodes"),
  };
}

/** Whether a query is about a job; the job itself may be known by its number. */
function isOf(key: readonly unknown[], id: string, cache: QueryClient): boolean {
  return key[1] === id || cache.getQueryData<Job>(key)?.id === id;
}
