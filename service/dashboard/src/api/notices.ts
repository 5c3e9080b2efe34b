import { useQuery } from "@tanstack/react-query";

import { client, unwrap } from "./client";
import { useInterval } from "./live";
import { useFollow } from "./stream";

/** How often notices are asked for while no stream tells of them, in milliseconds. */
const POLL_MS = 30_000;

export function useNotices() {
  useFollow("notices");
  return useQuery({
    queryKey: ["notices"],
    queryFn: () => unwrap(client.GET("/api/v1/notices")),
    refetchInterval: useInterval(POLL_MS),
  });
}
