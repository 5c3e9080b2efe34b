import { useEffect, useRef, useState } from "react";

import { type Found, LogSearcher, MOST_MATCHES, NOTHING_FOUND, type Place, READING } from "../lib/logSearch";
import { client, unwrap } from "./client";
import type { LogIndex, LogSearch } from "./types";

/** Ranks whose logs are searched for errors at most. */
const MOST_RANKS = 8;

export function readIndex(job: string, attempt: number, rank: number, signal: AbortSignal): Promise<LogIndex> {
  const params = { path: { job_id: job }, query: { attempt, rank } };
  return unwrap<LogIndex>(client.GET("/api/v1/jobs/{job_id}/logs/index", { params, signal }));
}

export interface Wanted {
  job: string;
  attempt: number;
  ranks: readonly number[];
  /** What is searched for; null for lines that tell of errors. */
  words: string | null;
  context: number;
  /** Another value each time the logs have grown: what has come is searched then. */
  grown: unknown;
}

/** Lines of logs that hold some words, found by the service part by part; nothing is searched for without any. */
export function useLogSearch({ job, attempt, ranks, words, context, grown }: Wanted): Found {
  const key = ranks.slice(0, MOST_RANKS).join(",");
  const search = JSON.stringify([job, attempt, key, words, context]);
  const [found, setFound] = useState({ search: "", ...NOTHING_FOUND });
  const searcher = useRef<LogSearcher>(undefined);
  useEffect(() => {
    const stop = new AbortController();
    const asked = { attempt, context, limit: MOST_MATCHES, ...(words === null ? { errors: true } : { q: words }) };
    const read = (rank: number, from: Place) => unwrap<LogSearch>(client.GET("/api/v1/jobs/{job_id}/logs/search", {
      params: { path: { job_id: job }, query: { ...asked, rank, ...from } }, signal: stop.signal,
    }));
    const tell = (some: Found) => setFound({ search, ...some });
    searcher.current = new LogSearcher(key === "" ? [] : key.split(",").map(Number), read, tell, stop.signal);
    return () => stop.abort();
  }, [search, job, attempt, key, words, context]);
  useEffect(() => {
    if (words !== "") void searcher.current?.search();
  }, [job, attempt, key, words, context, grown]);
  if (words === "") return NOTHING_FOUND;
  return found.search === search ? found : READING;
}
