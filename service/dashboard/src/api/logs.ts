import { useEffect, useState } from "react";

import { client, unwrap } from "./client";
import type { LogIndex, LogMatch, LogSearch } from "./types";

/** Lines that a search shows; all are counted. */
export const MOST_MATCHES = 1_000;
/** Ranks whose logs are searched for errors at most. */
const MOST_RANKS = 8;

export function readIndex(job: string, attempt: number, rank: number, signal: AbortSignal): Promise<LogIndex> {
  const params = { path: { job_id: job }, query: { attempt, rank } };
  return unwrap<LogIndex>(client.GET("/api/v1/jobs/{job_id}/logs/index", { params, signal }));
}

export interface Found {
  /** The rank and the line that was found there. */
  matches: { rank: number; match: LogMatch }[];
  count: number;
  /** Whether all has been read. */
  done: boolean;
  error: unknown;
}

export interface Wanted {
  job: string;
  attempt: number;
  ranks: readonly number[];
  /** What is searched for; null for lines that tell of errors. */
  words: string | null;
  context: number;
}

/** Where a search goes on: a byte, and the number of the line there. */
interface Place {
  offset: number;
  line: number;
}

const NOTHING: Found = { matches: [], count: 0, done: true, error: null };

/** Lines of logs that hold some words, found by the service part by part; nothing is searched for without any. */
export function useLogSearch({ job, attempt, ranks, words, context }: Wanted): Found {
  const [found, setFound] = useState<Found>(NOTHING);
  const key = ranks.slice(0, MOST_RANKS).join(",");
  useEffect(() => {
    const stop = new AbortController();
    const search = async () => {
      setFound(words === "" ? NOTHING : { ...NOTHING, done: false });
      if (words === "" || key === "") return;
      for (const rank of key.split(",").map(Number)) {
        let from: Place | null = { offset: 0, line: 0 };
        while (from !== null) {
          const query = {
            attempt, rank, context, limit: MOST_MATCHES, ...from, ...(words === null ? { errors: true } : { q: words }),
          };
          const answer: LogSearch = await unwrap<LogSearch>(client.GET("/api/v1/jobs/{job_id}/logs/search", {
            params: { path: { job_id: job }, query }, signal: stop.signal,
          }));
          setFound((known) => ({
            ...known,
            count: known.count + answer.count,
            matches: [...known.matches, ...answer.matches.map((match) => ({ rank, match }))].slice(0, MOST_MATCHES),
          }));
          from = answer.next === null ? null : { offset: answer.next, line: answer.line };
        }
      }
      setFound((known) => ({ ...known, done: true }));
    };
    search().catch((error: unknown) => stop.signal.aborted || setFound({ ...NOTHING, error }));
    return () => stop.abort();
  }, [job, attempt, key, words, context]);
  return found;
}
