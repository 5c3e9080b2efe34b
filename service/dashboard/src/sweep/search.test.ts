import { expect, it } from "vitest";

import { parseBrushes, parseSweep } from "./search";

const read = (raw: object) => parseSweep(raw as Parameters<typeof parseSweep>[0]);

it("reads what it knows and leaves the rest out", () => {
  const known = { metric: "val/acc", mode: "max", brush: { "parameter:lr": [0.1, 1] }, x: "parameter:lr", y: "metric:loss" };
  expect(read({ ...known, other: 1 })).toEqual(known);
  expect(read({ metric: "", mode: "best", brush: { lr: 1 }, x: "lr", y: 3 })).toEqual({});
});

it("reads an address and leaves out what is no brush", () => {
  expect(parseBrushes({ "parameter:lr": [0.1, 1], "metric:a/b": [], "parameter:o": ["x"], lr: [1, 2], "metric:c": [1], "metric:d": [NaN, 2] }))
    .toEqual({ "parameter:lr": [0.1, 1], "metric:a/b": [], "parameter:o": ["x"] });
  expect([parseBrushes("x"), parseBrushes(null)]).toEqual([{}, {}]);
});
