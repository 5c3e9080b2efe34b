import { useEffect, useMemo, useRef, useState } from "react";

import { ApiError, fetchBytes } from "../api/client";
import { readIndex } from "../api/logs";
import { follow, onStream } from "../api/stream";
import {
  blockAt, type Chunk, documentOf, EMPTY_DOCUMENT, grown, linesOf, type LogBlock, type LogDocument, rangesOf,
} from "../lib/logDocument";

/** Ranks of an attempt that are read as one log. */
export interface LogSource {
  job: string;
  attempt: number;
  ranks: readonly number[];
}

/** Bytes of one request at most, unless a block has more. */
const READ_BYTES = 512 * 1024;
/** Blocks whose lines are remembered. */
const REMEMBERED = 600;
/** Pause before what the service did not answer is asked for again, in milliseconds. */
const RETRY_MS = 5_000;
/** What stands for the middle of a line that is too long. */
const LEFT_OUT = new TextEncoder().encode(" … ");
/** Blocks that are read ahead on either side of those in sight. */
const AHEAD = 3;

interface Read {
  document: LogDocument;
  /** Whether more may come. */
  live: boolean;
  ready: boolean;
  error: unknown;
}

/** Where the lines of a log are, and those that come while it grows. */
export function useLogDocument({ job, attempt, ranks }: LogSource): Read {
  const [state, setState] = useState<Read>({ document: EMPTY_DOCUMENT, live: true, ready: false, error: null });
  const key = ranks.join(",");
  useEffect(() => {
    const stop = new AbortController();
    const own = key.split(",").map(Number);
    const ended = new Set<number>();
    let retry: ReturnType<typeof setTimeout> | undefined;
    const end = (rank: number) => {
      ended.add(rank);
      if (ended.size === own.length) setState((known) => ({ ...known, live: false }));
    };
    const add = (rank: number, chunk: Chunk) => (
      setState((known) => ({ ...known, document: grown(known.document, rank, chunk, Date.now() / 1000) }))
    );
    const begin = async () => {
      const indices = own.map(async (rank) => ({ rank, index: await readIndex(job, attempt, rank, stop.signal) }));
      const found = await Promise.all(indices);
      const document = await withEnds(job, attempt, documentOf(found), stop.signal);
      setState({ document, live: true, ready: true, error: null });
      for (const { rank, index } of found) {
        followRank(`${job}:${attempt}:${rank}`, index.size, (chunk) => add(rank, chunk), () => end(rank), stop.signal);
      }
    };
    const tryToBegin = () => void begin().catch((error: unknown) => {
      if (stop.signal.aborted) return;
      setState((known) => ({ ...known, error }));
      if (mayPass(error)) retry = setTimeout(tryToBegin, RETRY_MS);
    });
    tryToBegin();
    return () => {
      stop.abort();
      clearTimeout(retry);
    };
  }, [job, attempt, key]);
  return state;
}

/** Whether what was asked for may be there later: the service has not answered, or cannot just now. */
function mayPass(error: unknown): boolean {
  return !(error instanceof ApiError) || error.status >= 500;
}

/** The document with the text of each rank's last block, to which lines may be added. */
async function withEnds(job: string, attempt: number, known: LogDocument, signal: AbortSignal): Promise<LogDocument> {
  const ends = new Map(known.blocks.map((block) => [block.rank, block]));
  const texts = new Map(await Promise.all([...ends.values()].map(async (block) => (
    [block, new TextDecoder().decode(await readBlock(job, attempt, block, signal))] as const
  ))));
  const blocks = known.blocks.map((block) => {
    const text = texts.get(block);
    return text === undefined ? block : { ...block, text };
  });
  return { ...known, blocks };
}

/** Follows a rank's log from a byte on, until it is over or the signal; after a pause it goes on where it was. */
function followRank(
  whose: string, from: number, add: (chunk: Chunk) => void, onEnd: () => void, signal: AbortSignal,
): void {
  let [end, topic] = [from, ""];
  let leave: (() => void) | undefined;
  const over = new AbortController();
  const begin = () => {
    const before = leave;
    topic = `log:${whose}:${end}`;
    leave = document.hidden ? undefined : follow(topic);
    before?.();
  };
  const stop = onStream((message) => {
    if (message.kind === "open" && message.open) begin();
    if (message.kind !== "event" || message.data.topic !== topic) return;
    if (message.name === "log") {
      const chunk = message.data as unknown as Chunk;
      end = Math.max(end, chunk.next);
      add(chunk);
    }
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

async function readBlock(
  job: string, attempt: number, { rank, offset, end }: Pick<LogBlock, "rank" | "offset" | "end">, signal?: AbortSignal,
): Promise<Uint8Array> {
  const parts = await Promise.all(rangesOf({ offset, end }).map(async ([from, to]) => await fetchBytes(
    `/api/v1/jobs/${job}/logs?rank=${rank}&attempt=${attempt}&offset=${from}&limit=${Math.max(1, to - from)}`,
    signal,
  )));
  const [head, tail] = parts;
  if (head === undefined || tail === undefined) return head ?? new Uint8Array();
  return Uint8Array.from([...head, ...LEFT_OUT, ...tail]);
}

const keyOf = ({ rank, offset, end }: LogBlock) => `${rank} ${offset} ${end}`;

/** A line in sight; its text is null until it is here. */
export interface ShownLine {
  line: number;
  block: LogBlock;
  own: number;
  text: string | null;
}

/** The lines from `from` to before `to`, read by range as they come into sight. */
export function useLines({ job, attempt }: LogSource, whole: LogDocument, from: number, to: number): ShownLine[] {
  const [known, setKnown] = useState<ReadonlyMap<string, string[]>>(new Map());
  const asked = useRef(new Set<string>());
  const [first, last] = [blockAt(whole, from), blockAt(whole, Math.max(from, to - 1))];
  const wanted = useMemo(
    () => whole.blocks.slice(Math.max(0, first - AHEAD), last + 1 + AHEAD), [whole, first, last],
  );
  useEffect(() => {
    const missing = wanted.filter((block) => (
      block.text === null && !known.has(keyOf(block)) && !asked.current.has(keyOf(block))
    ));
    for (const run of runs(missing)) {
      run.forEach((block) => asked.current.add(keyOf(block)));
      readRun(job, attempt, run)
        .then((found) => setKnown((before) => new Map([...[...before].slice(-REMEMBERED), ...found])))
        .catch((error: unknown) => {
          if (mayPass(error)) setTimeout(() => setKnown((before) => new Map(before)), RETRY_MS);
        })
        .finally(() => run.forEach((block) => asked.current.delete(keyOf(block))));
    }
  }, [wanted, known, job, attempt]);
  return useMemo(() => {
    const shown: ShownLine[] = [];
    for (const block of whole.blocks.slice(first, last + 1)) {
      const lines = block.text === null ? known.get(keyOf(block)) : linesOf(block.text);
      const begin = Math.max(0, from - block.line);
      for (let at = begin; at < block.lines && block.line + at < to; at += 1) {
        shown.push({ line: block.line + at, block, own: block.own + at, text: lines?.[at] ?? null });
      }
    }
    return shown;
  }, [whole, first, last, from, to, known]);
}

/** Blocks that follow one another in a rank's log, in parts that one request reads. */
function runs(blocks: readonly LogBlock[]): LogBlock[][] {
  const found: LogBlock[][] = [];
  for (const block of blocks) {
    const run = found.findLast((one) => one.at(-1)?.rank === block.rank);
    const [head, tail] = [run?.[0], run?.at(-1)];
    if (run && head && tail?.end === block.offset && block.end - head.offset <= READ_BYTES) run.push(block);
    else found.push([block]);
  }
  return found;
}

async function readRun(job: string, attempt: number, run: readonly LogBlock[]): Promise<[string, string[]][]> {
  const [head, tail] = [run[0], run.at(-1)];
  if (head === undefined || tail === undefined) return [];
  const raw = await readBlock(job, attempt, { ...head, end: tail.end });
  return run.map((block) => {
    const own = raw.subarray(block.offset - head.offset, block.end - head.offset);
    return [keyOf(block), linesOf(new TextDecoder().decode(own))];
  });
}
