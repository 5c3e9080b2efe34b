import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";

import { client, unwrap } from "./client";
import { useInterval } from "./live";
import { useFollow } from "./stream";
import type { NewAnnouncement, Notices } from "./types";

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

/** A change of the notices, which its answer has. */
function useChange<Input>(change: (input: Input) => Promise<Notices>) {
  const cache = useQueryClient();
  return useMutation({ mutationFn: change, onSuccess: (notices) => cache.setQueryData(["notices"], notices) });
}

export const usePause = () =>
  useChange((message: string) => unwrap(client.PUT("/api/v1/pause", { body: { message } })));
export const useResumeQueue = () => useChange(() => unwrap(client.DELETE("/api/v1/pause")));
export const useAnnounce = () =>
  useChange((body: NewAnnouncement) => unwrap(client.PUT("/api/v1/announcement", { body })));
export const useWithdraw = () => useChange(() => unwrap(client.DELETE("/api/v1/announcement")));
