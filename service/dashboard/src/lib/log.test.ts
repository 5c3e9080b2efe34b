import { describe, expect, it } from "vitest";

import { append, clean, EMPTY_LOG, prepend, wholeLines } from "./log";

const chunk = (offset: number, text: string) => ({ offset, next: offset + text.length, text });

describe("append", () => {
  it("joins a line that came in pieces", () => {
    const log = append(append(EMPTY_LOG, chunk(0, "one\ntw")), chunk(6, "o\n"));
    expect(log.lines).toEqual(["one", "two", ""]);
    expect([log.start, log.end]).toEqual([0, 8]);
  });

  it("skips what it has", () => {
    const log = append(EMPTY_LOG, chunk(0, "one\n"));
    expect(append(log, chunk(0, "one\n"))).toBe(log);
  });

  it("forgets the oldest beyond the limit, and knows where it begins", () => {
    let log = EMPTY_LOG;
    for (let n = 0; n < 10; n += 1) log = append(log, chunk(n * 4, `l ${n}\n`), 4);
    expect(log.lines).toEqual(["l 7", "l 8", "l 9", ""]);
    expect([log.start, log.base]).toEqual([28, 7]);
  });
});

describe("prepend", () => {
  it("puts earlier lines in front and shifts the base", () => {
    const log = prepend(append(EMPTY_LOG, chunk(8, "three\n")), chunk(0, "one\ntwo\n"));
    expect(log.lines).toEqual(["one", "two", "three", ""]);
    expect([log.start, log.base]).toEqual([0, -2]);
  });

  it("refuses what does not fit", () => {
    const log = append(EMPTY_LOG, chunk(8, "three\n"));
    expect(prepend(log, chunk(0, "one"))).toBe(log);
  });
});

it("begins at a whole line, so that no character is torn", () => {
  const raw = new TextEncoder().encode("é\nzwei\n").subarray(1);
  expect(wholeLines(raw, 101)).toEqual({ offset: 103, next: 108, text: "zwei\n" });
  expect(wholeLines(new TextEncoder().encode("a\nb"), 0)).toEqual({ offset: 0, next: 3, text: "a\nb" });
});

describe("clean", () => {
  it("strips colours, titles and control characters", () => {
    expect(clean("\u001b[1;31mred\u001b[0m \u001b]0;title\u0007x\u0000\ty")).toBe("red x\ty");
  });

  it("shows what a terminal would after carriage returns", () => {
    expect(clean("10%\r50%\r100%")).toBe("100%");
    expect(clean("windows\r")).toBe("windows");
  });
});
