import { expect, it } from "vitest";

import type { Job } from "../api/types";
import { axisOf } from "./axes";
import { type Brushes, brushOf, brushWords, ofAxes, partOf, selected, withBrush } from "./brushes";

const trials = [1, 2, 3, 4, 5, 6].map((n) => (
  { parameters: { lr: n / 10, opt: n % 2 ? "adam" : "sgd" }, latest: n < 6 ? { acc: n } : {} }
)) as unknown as Job[];
const [lr, opt, acc] = [axisOf(trials, "parameter:lr"), axisOf(trials, "parameter:opt"), axisOf(trials, "metric:acc", { mode: "max" })];
const passing = (brushes: Parameters<typeof selected>[2]) => (
  selected(trials, [lr, opt, acc], brushes).flatMap((passes, at) => (passes ? [at + 1] : []))
);

it("makes brushes of what is drawn, whichever way", () => {
  expect(brushOf(lr, [1.4, 0.5])).toEqual([0.35, 0.6]);
  expect(brushOf(lr, [0, 1])).toBeNull();
  expect(brushOf(opt, [0.6, 0.9])).toEqual(["sgd"]);
  expect([brushOf(opt, [0.4, 0.6]), brushOf(opt, [0, 1])]).toEqual([null, null]);
});

it("finds where a brush lies", () => {
  expect(partOf(lr, [0.1, 0.6])).toEqual([0, 1]);
  expect(partOf(opt, ["sgd"])).toEqual([0.5, 1]);
  expect(partOf(opt, [])).toBeNull();
  expect(partOf(lr, ["0.1", "0.6"])).toEqual([0, 1]);
});

it("selects what passes all brushes", () => {
  expect(passing({})).toEqual([1, 2, 3, 4, 5, 6]);
  expect(passing({ "parameter:lr": [0.2, 0.5] })).toEqual([2, 3, 4, 5]);
  expect(passing({ "parameter:lr": [0.2, 0.5], "parameter:opt": ["sgd"] })).toEqual([2, 4]);
  expect(passing({ "metric:acc": [] })).toEqual([6]);
  expect(passing({ "metric:acc": [4, 5] })).toEqual([4, 5]);
});

it("leaves a brush of an axis that is not drawn out of account", () => {
  expect(passing({ "metric:loss": [0, 1] })).toHaveLength(6);
});

it("lets what lies beyond the end of an axis pass with its end", () => {
  const losses = [1, 2, 3, 4, 5, 6, 7, 8, 9, 1e6];
  const wild = losses.map((loss) => ({ parameters: {}, latest: { loss } })) as unknown as Job[];
  const axis = axisOf(wild, "metric:loss", { mode: "min" });
  const brush = brushOf(axis, [0.99, 1]);
  expect(selected(wild, [axis], brush === null ? {} : { "metric:loss": brush })).toEqual([...Array<boolean>(8).fill(false), true, true]);
});

it("changes one brush and tells them in words", () => {
  expect(withBrush({ "parameter:lr": [0, 1] }, "parameter:opt", ["sgd"])).toEqual({ "parameter:lr": [0, 1], "parameter:opt": ["sgd"] });
  expect(withBrush({ "parameter:lr": [0, 1] }, "parameter:lr", null)).toEqual({});
  expect([brushWords([0.1, 1]), brushWords(["a", "b"]), brushWords([])]).toEqual(["0.1 to 1", "a, b", "no value"]);
});

it("keeps the brushes of axes that stay", () => {
  const brushes: Brushes = { "parameter:lr": [0.2, 0.5], "metric:acc": [] };
  expect(ofAxes(brushes, ["metric:acc", "metric:loss"])).toEqual({ "metric:acc": [] });
  expect(ofAxes(brushes, [])).toBeUndefined();
});
