import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";

import type { ToldJob } from "../lib/listed";
import { type JobNotification, notificationsOf } from "../lib/notifications";
import { ATTENTION } from "./box";
import { client, unwrap } from "./client";
import { useFollow } from "./stream";

/** Jobs of which a person is told, from the newest on; the stream brings older ones that change. */
const JOBS = 50;

/** What has become of a person's jobs, the last first; undefined until it is read. The stream tells what follows. */
export function useNotifications(user: string): readonly JobNotification[] | undefined {
  useFollow(`mine:${user}`, true);
  const jobs = useQuery({
    queryKey: ["mine", user],
    queryFn: async (): Promise<readonly ToldJob[]> => {
      const query = { user, trials: false, limit: JOBS };
      return (await unwrap(client.GET("/api/v1/jobs", { params: { query } }))).items;
    },
    staleTime: Infinity,
  }).data;
  const attention = useQuery({ ...ATTENTION, staleTime: Infinity }).data;
  return useMemo(
    () => jobs && attention && notificationsOf(jobs, attention.filter((one) => one.user === user)),
    [jobs, attention, user],
  );
}
