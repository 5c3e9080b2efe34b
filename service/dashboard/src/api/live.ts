import { type QueryClient, useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";

import type { Job } from "./types";

/**
 * Follows what changes while the page is in sight and asks again for what it touches. A hidden page lets go of its
 * connection: browsers allow six to one server.
 */
export function useLive(enabled: boolean): void {
  const cache = useQueryClient();
  useEffect(() => {
    if (!enabled) return;
    let source: EventSource | undefined;
    const follow = () => {
      source?.close();
      source = document.hidden ? undefined : connect(cache);
    };
    follow();
    document.addEventListener("visibilitychange", follow);
    return () => {
      document.removeEventListener("visibilitychange", follow);
      source?.close();
    };
  }, [cache, enabled]);
}

function connect(cache: QueryClient): EventSource {
  const source = new EventSource("/api/v1/stream");
  const again = (...names: string[]) => names.forEach((name) => void cache.invalidateQueries({ queryKey: [name] }));
  source.addEventListener("job", (event: MessageEvent<string>) => {
    const { id } = JSON.parse(event.data) as { id: string };
    void cache.invalidateQueries({ predicate: (query) => query.queryKey[0] === "job" && isOf(query.queryKey, id, cache) });
    again("jobs");
  });
  source.addEventListener("jobs", () => again("jobs", "queue"));
  source.addEventListener("nodes", () => again("nodes"));
  return source;
}

/** Whether a query is about a job; the job itself may be known by its number. */
function isOf(key: readonly unknown[], id: string, cache: QueryClient): boolean {
  return key[1] === id || cache.getQueryData<Job>(key)?.id === id;
}
