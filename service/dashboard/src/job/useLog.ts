import { useCallback, useEffect, useRef, useState } from "react";

import { problem } from "../api/client";
import { follow, onStream } from "../api/stream";
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
        followLog(source, () => end.current, add, () => setLive(false), stop.signal);
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

/** Follows a log from its end on, until it is over or the signal; after a pause it goes on where it was. */
function followLog(
  { job, attempt, rank }: LogSource,
  end: () => number,
  add: (chunk: Chunk) => void,
  onEnd: () => void,
  signal: AbortSignal,
): void {
  let topic = "";
  let leave: (() => void) | undefined;
  const over = new AbortController();
  const begin = () => {
    const before = leave;
    topic = `log:${job}:${attempt}:${rank}:${end()}`;
    leave = document.hidden ? undefined : follow(topic);
    before?.();
  };
  const stop = onStream((message) => {
    if (message.kind === "open" && message.open) begin();
    if (message.kind !== "event" || message.data.topic !== topic) return;
    if (message.name === "log") add(message.data as unknown as Chunk);
    if (message.name === "log-end") {
      over.abort();
      onEnd();
    }
  });
  const ended = AbortSignal.any([signal, over.signal]);
  document.addEventListener("visibilitychange", begin, { signal: ended });
  ended.addEventListener("abort", () => {
    stop();
    leave?.();
  });
  begin();
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
