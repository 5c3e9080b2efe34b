import { afterEach, beforeEach, expect, test, vi } from "vitest";

import type { LogSearch } from "../api/types";
import { type Found, LogSearcher, nextMatch, NOTHING_FOUND, PAUSE_MS, type Place } from "./logSearch";

const PART = 12;

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** What the service answers of a log that is so long now: lines with "Error", in parts that end with a line. */
function answerOf(log: string, { offset, line }: Place): LogSearch {
  const over = log.indexOf("\n", offset + PART) + 1;
  const next = over > 0 && over < log.length ? over : null;
  const lines = log.slice(offset, next ?? undefined).split("\n");
  const last = lines.at(-1) ?? "";
  const matches = lines.flatMap((text, at) => (
    text.includes("Error") ? [{ line: line + at, offset: 0, text, before: [], after: [] }] : []
  ));
  const lineOffset = (next ?? log.length) - last.length;
  return { attempt: 1, count: matches.length, matches, next, line: line + lines.length - 1, line_offset: lineOffset };
}

function searcher(logs: string[]) {
  const [told, places, stop] = [[] as Found[], [] as Place[], new AbortController()];
  const read = (rank: number, from: Place) => {
    places.push(from);
    const log = logs[rank];
    return log === undefined ? Promise.reject(new Error("gone")) : Promise.resolve(answerOf(log, from));
  };
  const made = new LogSearcher([...logs.keys()], read, (found) => told.push(found), stop.signal);
  const search = async () => {
    void made.search();
    await vi.advanceTimersByTimeAsync(PAUSE_MS);
    return told.at(-1) ?? NOTHING_FOUND;
  };
  return { told, places, stop, search };
}

/** Adds to the log of rank 0. */
function grow(logs: string[], text: string): void {
  logs[0] = (logs[0] ?? "") + text;
}

const linesOf = ({ matches }: Found) => matches.map(({ rank, match }) => [rank, match.line]);

test("a log is searched in parts, and on from its last line once it has grown", async () => {
  const logs = ["Error: a\nfine\nfine\nError: b\nfine\n"];
  const { told, places, search } = searcher(logs);
  expect(linesOf(await search())).toEqual([[0, 0], [0, 3]]);
  expect(told.map(({ count, done }) => [count, done])).toEqual([
    [0, false], [1, false], [2, false], [2, false], [2, true],
  ]);
  grow(logs, "Error: c\n");
  expect(linesOf(await search())).toEqual([[0, 0], [0, 3], [0, 5]]);
  expect(places.at(-1)).toEqual({ offset: 33, line: 5 });
  expect(told.slice(5).every(({ done }) => done)).toBe(true);
});

test("a line that was not over is counted once", async () => {
  const logs = ["fine\nError: a", "Error: b\n"];
  const { search } = searcher(logs);
  expect((await search()).count).toBe(2);
  grow(logs, " and Error: more\nfine\n");
  const found = await search();
  expect([found.count, linesOf(found)]).toEqual([2, [[1, 0], [0, 1]]]);
  expect(found.matches[1]?.match.text).toBe("Error: a and Error: more");
});

test("what comes while it is read is read once after a pause", async () => {
  const logs = ["Error: a\n"];
  const { told, places, search } = searcher(logs);
  const first = search();
  grow(logs, "Error: b\n");
  for (let times = 0; times < 5; times += 1) void search();
  await first;
  await vi.advanceTimersByTimeAsync(3 * PAUSE_MS);
  expect([told.at(-1)?.count, places.length]).toEqual([2, 2]);
});

test("a failure keeps what was found, and is mended by the next search", async () => {
  const logs = ["Error: a\n"];
  const { search, stop, told } = searcher(logs);
  await search();
  const log = logs.pop() ?? "";
  expect(await search()).toMatchObject({ count: 1, done: true, error: new Error("gone") });
  logs.push(`${log}Error: b\n`);
  expect(await search()).toMatchObject({ count: 2, error: null });
  stop.abort();
  const before = told.length;
  await search();
  expect(told.length).toBe(before);
});

test("matches are walked through forwards from the first, back from the last", () => {
  expect([nextMatch(-1, 1, 3), nextMatch(2, 1, 3)]).toEqual([0, 0]);
  expect([nextMatch(-1, -1, 3), nextMatch(0, -1, 3), nextMatch(2, -1, 3)]).toEqual([2, 2, 1]);
});
