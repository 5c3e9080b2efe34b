import { expect, it } from "vitest";

import type { Job } from "../api/types";
import { axisOf, keysOf, readKey } from "./axes";

const trial = (parameters: Record<string, unknown> | null, latest: Record<string, unknown> = {}) =>
  ({ parameters, latest }) as unknown as Job;
const rates = [0.001, 0.002, 0.01, 0.03, 0.05, 0.1].map((lr) => trial({ lr }, { acc: lr }));

it("reads parameters and metrics; NaN is no value", () => {
  expect(readKey(trial({ lr: 0.1 }), "parameter:lr")).toBe(0.1);
  expect(readKey(trial(null), "parameter:lr")).toBeUndefined();
  expect(readKey(trial({}, { "val/acc": "inf" }), "metric:val/acc")).toBe(Infinity);
  expect(readKey(trial({}, { acc: "nan" }), "metric:acc")).toBeUndefined();
});

it("is logarithmic where a parameter spans much", () => {
  const axis = axisOf(rates, "parameter:lr");
  expect(axis.kind).toBe("log");
  expect(axis.place(0.01)).toBeCloseTo(0.5);
  expect([axis.place(0.001), axis.place(0.1), axis.place(undefined)]).toEqual([0, 1, null]);
  expect(axis.ticks.map(({ words }) => words)).toEqual(["0.001", "0.003162", "0.01", "0.03162", "0.1"]);
});

it("is as the sweep draws the values, whatever they span", () => {
  expect(axisOf(rates, "parameter:lr", { form: { uniform: [0, 0.1] } }).kind).toBe("linear");
  expect(axisOf(rates.slice(1), "parameter:lr", { form: { loguniform: [0.001, 0.1] } }).kind).toBe("words");
  const near = [1, 2, 3, 4, 5, 6].map((lr) => trial({ lr }));
  expect(axisOf(near, "parameter:lr", { form: { loguniform: [1, 6] } }).kind).toBe("log");
});

it("gives words and few numbers a place each", () => {
  const axis = axisOf([trial({ opt: "sgd" }), trial({ opt: "adam" }), trial({ opt: "sgd" }), trial({})], "parameter:opt");
  expect(axis.ticks).toEqual([{ at: 0.25, words: "adam" }, { at: 0.75, words: "sgd" }]);
  expect([axis.place("sgd"), axis.place(undefined)]).toEqual([0.75, null]);
  expect(axisOf([trial({ n: 8 }), trial({ n: 16 })], "parameter:n")).toMatchObject({ kind: "words", order: ["8", "16"] });
});

it("is not flattened by one that went astray", () => {
  const losses = [1, 2, 3, 4, 5, 6, 7, 8, 9, 1e6].map((loss) => trial({}, { loss }));
  const axis = axisOf(losses, "metric:loss", { mode: "min" });
  expect(axis.place(1e6)).toBe(1);
  expect(axis.place(5)).toBe(0.5);
  expect(axisOf([trial({}, { loss: 2 })], "metric:loss").place(2)).toBe(0.5);
  expect(axisOf([], "metric:loss").place(0.5)).toBe(0.5);
});

it("has an axis for what differs, and for the metric", () => {
  const trials = [trial({ lr: 0.1, seed: 1 }), trial({ lr: 0.2, seed: 1 })];
  expect(keysOf(["lr", "seed"], trials, "acc")).toEqual(["parameter:lr", "metric:acc"]);
  expect(keysOf(["seed"], trials, "acc")).toEqual(["parameter:seed", "metric:acc"]);
});
