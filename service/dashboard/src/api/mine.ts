import { useQuery } from "@tanstack/react-query";

import { FINAL, statesOf } from "../lib/states";
import { client, unwrap } from "./client";
import { POLL_MS, useInterval } from "./live";
import type { Job } from "./types";

/** Most jobs of the viewer that the home page shows, and of them those that have ended in the last day. */
const MINE = 8;
const MINE_ENDED = 4;
const DAY_MS = 86_400_000;

/** A user's jobs: what runs, then what waits, then what has just ended; undefined until they are read. */
export function useMine(user: string) {
  const [running, waiting, ended] = [useSome(user, statesOf("active")), useSome(user, ["queued"]), useSome(user, FINAL)];
  const lists = [running.data, waiting.data?.toReversed(), ended.data?.filter(justEnded).slice(0, MINE_ENDED)];
  const jobs = lists.every((list) => list !== undefined) ? lists.flat() : undefined;
  return { jobs, error: running.error ?? waiting.error ?? ended.error };
}

function justEnded({ ended_at: at }: Job): boolean {
  return at !== null && Date.now() - Date.parse(at) < DAY_MS;
}

function useSome(user: string, state: readonly Job["state"][]) {
  const query = { user, state: [...state], limit: MINE };
  return useQuery({
    queryKey: ["jobs", "list", query],
    queryFn: () => unwrap(client.GET("/api/v1/jobs", { params: { query } })),
    select: (page) => page.items,
    refetchInterval: useInterval(POLL_MS),
  });
}
