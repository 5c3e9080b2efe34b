import { afterEach, beforeEach, expect, it, vi } from "vitest";

import { Frames } from "./frames";

let now = 0;
let waiting: (() => void)[] = [];
let drawn: string[] = [];

const takes = (name: string, ms: number) => () => {
  now += ms;
  drawn.push(name);
};

/** Lets the browser come to its next frame; returns what is drawn in it. */
function frame(): string[] {
  drawn = [];
  const due = waiting;
  waiting = [];
  due.forEach((each) => each());
  return drawn;
}

beforeEach(() => {
  now = 0;
  waiting = [];
  vi.stubGlobal("requestAnimationFrame", (each: () => void) => waiting.push(each));
  vi.stubGlobal("performance", { now: () => now });
});

afterEach(() => vi.unstubAllGlobals());

it("draws in a frame what there is time for, and the rest in those to come", () => {
  const frames = new Frames();
  const charts = ["a", "b", "c"].map((name) => takes(name, 5));
  charts.forEach((chart) => frames.ask(chart));
  expect(frame()).toEqual(["a", "b"]);
  expect(frame()).toEqual(["c"]);
  expect(frame()).toEqual([]);
});

it("draws what was asked for twice once, and what has waited before what is asked for again", () => {
  const frames = new Frames();
  const [a, b] = [takes("a", 10), takes("b", 10)];
  for (const chart of [a, b, a]) frames.ask(chart);
  expect(frame()).toEqual(["a"]);
  frames.ask(a);
  expect(frame()).toEqual(["b"]);
  expect(frame()).toEqual(["a"]);
});

it("draws first what is to be first, and not what was dropped", () => {
  const frames = new Frames();
  const [a, b, c] = [takes("a", 1), takes("b", 1), takes("c", 1)];
  frames.ask(a);
  frames.ask(b);
  frames.ask(c);
  frames.ask(b, true);
  frames.drop(c);
  expect(frame()).toEqual(["b", "a"]);
});
