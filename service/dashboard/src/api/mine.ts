import { useQuery } from "@tanstack/react-query";

import { MINE, mineOf } from "../lib/mine";
import { FINAL, statesOf } from "../lib/states";
import { client, unwrap } from "./client";
import { POLL_MS, useInterval } from "./live";
import type { Job } from "./types";

/** A user's jobs: what runs, then what waits, by its place, then what has just ended; undefined until they are read. */
export function useMine(user: string, now: number) {
  const running = useSome(user, statesOf("active"), "newest");
  const waiting = useSome(user, ["queued"], "queue");
  const ended = useSome(user, FINAL, "newest");
  const read = running.data !== undefined && waiting.data !== undefined && ended.data !== undefined;
  const mine = read ? mineOf(running.data, waiting.data, ended.data, now) : undefined;
  return { mine, error: running.error ?? waiting.error ?? ended.error };
}

function useSome(user: string, state: readonly Job["state"][], order: "newest" | "queue") {
  const query = { user, state: [...state], order, limit: MINE };
  return useQuery({
    queryKey: ["jobs", "list", query],
    queryFn: () => unwrap(client.GET("/api/v1/jobs", { params: { query } })),
    refetchInterval: useInterval(POLL_MS),
  });
}
