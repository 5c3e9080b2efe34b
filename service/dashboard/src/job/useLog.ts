import { useCallback, useEffect, useRef, useState } from "react";

import { problem } from "../api/client";
import { append, type Chunk, EMPTY_LOG, type LogWindow, MAX_LINES, prepend, wholeLines } from "../lib/log";

/** Bytes read at once, at the end of a log and backwards. */
const READ_BYTES = 256 * 1024;

export interface LogSource {
  job: string;
  attempt: number;
  rank: number;
}

interface Log {
  log: LogWindow;
  /** Whether more may come. */
  live: boolean;
  error: unknown;
  loadEarlier: () => Promise<void>;
}

/** The end of a log, followed while it grows. `keepAll` holds what is read even beyond the limit of lines. */
export function useLog({ job, attempt, rank }: LogSource, keepAll: boolean): Log {
  const [log, setLog] = useState(EMPTY_LOG);
  const [live, setLive] = useState(true);
  const [error, setError] = useState<unknown>(null);
  const end = useRef(0);
  const limit = useRef(MAX_LINES);
  useEffect(() => {
    limit.current = keepAll ? Infinity : MAX_LINES;
  }, [keepAll]);
  useEffect(() => {
    const source = { job, attempt, rank };
    const add = (chunk: Chunk) => {
      end.current = Math.max(end.current, chunk.next);
      setLog((known) => append(known, chunk, limit.current));
    };
    const stop = new AbortController();
    void readTail(source, stop.signal)
      .then((chunk) => {
        add(chunk);
        follow(source, () => end.current, add, () => setLive(false), stop.signal);
      })
      .catch((failure: unknown) => stop.signal.aborted || setError(failure));
    return () => stop.abort();
  }, [job, attempt, rank]);
  const start = log.start ?? 0;
  const loadEarlier = useCallback(async () => {
    if (start === 0) return;
    const from = Math.max(0, start - READ_BYTES);
    const chunk = await read({ job, attempt, rank }, from, start - from);
    setLog((known) => prepend(known, chunk));
  }, [job, attempt, rank, start]);
  return { log, live, error, loadEarlier };
}

function addressOf({ job, attempt, rank }: LogSource, what: string): string {
  return `/api/v1/jobs/${encodeURIComponent(job)}/${what}?rank=${rank}&attempt=${attempt}`;
}

async function read(source: LogSource, offset: number, limit: number, signal?: AbortSignal): Promise<Chunk> {
  const address = `${addressOf(source, "logs")}&offset=${offset}&limit=${limit}`;
  const answer = await fetch(address, signal && { signal });
  if (!answer.ok) throw problem(answer.status, await answer.json().catch(() => null));
  const at = Number(answer.headers.get("TorchYard-Offset") ?? offset);
  return wholeLines(new Uint8Array(await answer.arrayBuffer()), at);
}

function readTail(source: LogSource, signal: AbortSignal): Promise<Chunk> {
  return read(source, -READ_BYTES, READ_BYTES, signal);
}

/** Listens while the page is in sight, from where the reader is. */
function follow(
  source: LogSource, from: () => number, add: (chunk: Chunk) => void, ended: () => void, signal: AbortSignal,
): void {
  let events: EventSource | undefined;
  let over = false;
  const listen = () => {
    events?.close();
    if (document.hidden || over || signal.aborted) return;
    events = new EventSource(`${addressOf(source, "logs/stream")}&offset=${from()}`);
    events.addEventListener("data", (event: MessageEvent<string>) => add(JSON.parse(event.data) as Chunk));
    events.addEventListener("end", () => {
      over = true;
      events?.close();
      ended();
    });
  };
  listen();
  document.addEventListener("visibilitychange", listen, { signal });
  signal.addEventListener("abort", () => events?.close());
}
