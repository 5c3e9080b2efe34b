import { expect, test } from "vitest";

import { blockAt, documentOf, EMPTY_DOCUMENT, grown, linesOf, placeOf, rangesOf } from "./logDocument";

const index = (lines: number, size: number, ...blocks: [number, number, number | null][]) => ({
  attempt: 1, size, lines, blocks: blocks.map(([offset, line, time]) => ({ offset, line, time })),
});
const first = { rank: 0, index: index(10, 100, [0, 0, 1], [40, 4, 20]) };
const second = { rank: 1, index: index(6, 60, [0, 0, 10], [30, 3, null]) };

test("a document of one rank has its blocks", () => {
  const whole = documentOf([first]);
  expect(whole.lines).toBe(10);
  expect(whole.blocks.map(({ offset, end, line, lines }) => [offset, end, line, lines])).toEqual([
    [0, 40, 0, 4], [40, 100, 4, 6],
  ]);
});

test("several ranks are merged by time", () => {
  const whole = documentOf([first, second]);
  expect(whole.lines).toBe(16);
  expect(whole.blocks.map(({ rank, line, own }) => [rank, line, own])).toEqual([
    [0, 0, 0], [1, 4, 0], [1, 7, 3], [0, 10, 4],
  ]);
  expect(placeOf(whole, 1, 4)).toBe(8);
  expect(placeOf(whole, 0, 4)).toBe(10);
  expect(placeOf(whole, 2, 4)).toBeNull();
  expect([0, 3, 4, 9, 10, 15].map((line) => blockAt(whole, line))).toEqual([0, 0, 1, 2, 3, 3]);
});

test("what comes continues a line, or begins a block of its own", () => {
  let whole = grown(EMPTY_DOCUMENT, 0, { offset: 0, next: 6, text: "one\ntw" }, 5);
  expect(whole.lines).toBe(2);
  whole = grown(whole, 0, { offset: 6, next: 8, text: "o\n" }, 6);
  expect([whole.lines, whole.blocks.length, whole.blocks[0]?.text]).toEqual([2, 1, "one\ntwo\n"]);
  whole = grown(whole, 1, { offset: 0, next: 2, text: "x\n" }, 7);
  whole = grown(whole, 0, { offset: 8, next: 10, text: "y\n" }, 8);
  expect(whole.blocks.map(({ rank, line, own }) => [rank, line, own])).toEqual([[0, 0, 0], [1, 2, 0], [0, 3, 2]]);
  expect(grown(whole, 0, { offset: 8, next: 10, text: "y\n" }, 9)).toBe(whole);
  const joined = grown(documentOf([second]), 1, { offset: 60, next: 62, text: "z\n" }, 9);
  expect(joined.blocks.at(-1)).toMatchObject({ own: 6, line: 6, lines: 1 });
});

test("lines of a text", () => {
  expect(linesOf("a\n\nb")).toEqual(["a", "", "b"]);
  expect(linesOf("a\n")).toEqual(["a"]);
});

test("of a log that grows for days the newest texts are kept, and what each rank goes on with", () => {
  const line = `${"x".repeat(32 * 1024)}\n`;
  let whole = grown(EMPTY_DOCUMENT, 1, { offset: 0, next: 5, text: "begun" }, 1);
  for (let at = 0; at < 220; at += 1) {
    whole = grown(whole, 0, { offset: at * line.length, next: (at + 1) * line.length, text: line }, at);
  }
  expect(whole.lines).toBe(221);
  expect(whole.blocks[0]?.text).toBe("begun");
  expect(whole.blocks.slice(1, 21).every(({ text, lines }) => text === null && lines === 1)).toBe(true);
  expect(whole.blocks.slice(21).every(({ text }) => text === line)).toBe(true);
});

test("both ends are read of a block with more than the service gives at once", () => {
  const [most, end] = [4 * 2 ** 20, 2 ** 18];
  expect(rangesOf({ offset: 7, end: 7 + most })).toEqual([[7, 7 + most]]);
  expect(rangesOf({ offset: 7, end: 8 + most })).toEqual([[7, 7 + end], [8 + most - end, 8 + most]]);
});
