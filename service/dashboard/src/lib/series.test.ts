import { describe, expect, it } from "vitest";

import type { Series } from "../api/types";
import { groupSeries, labels, mergeSeries, placeOfStep, type Point, smooth, toTable } from "./series";

const series = (name: string, points: Point[], rank = 0): Series => ({ name, rank, points });

it("puts metrics with the same last word on one chart", () => {
  const groups = groupSeries([series("train/loss", []), series("lr", []), series("val/loss", [])]);
  expect(groups.map((group) => [group.name, group.series.map((one) => one.name)])).toEqual([
    ["loss", ["train/loss", "val/loss"]],
    ["lr", ["lr"]],
  ]);
});

it("tells ranks only where several report a metric", () => {
  expect(labels([series("loss", []), series("loss", [], 1), series("lr", [])])).toEqual(
    ["loss · rank 0", "loss · rank 1", "lr"],
  );
});

describe("mergeSeries", () => {
  it("appends newer points, replaces repeated steps, takes new series", () => {
    const known = [series("loss", [[0, 10, 3], [1, 11, 2]])];
    const merged = mergeSeries(known, [series("loss", [[1, 11, 1.5], [2, 12, 1]]), series("lr", [[2, 12, 0.1]])]);
    expect(merged).toEqual([series("loss", [[0, 10, 3], [1, 11, 1.5], [2, 12, 1]]), series("lr", [[2, 12, 0.1]])]);
  });

  it("keeps what is there when nothing is new", () => {
    const known = [series("loss", [[0, 10, 3]])];
    expect(mergeSeries(known, [series("loss", [])])).toEqual(known);
  });
});

describe("toTable", () => {
  const both = [series("a", [[0, 100, 1], [2, 102, "nan"], [4, 104, -3]]), series("b", [[2, 102, 5]])];

  it("aligns steps; a value that is no number breaks the line and is marked", () => {
    expect(toTable(both, "step")).toEqual({
      x: [0, 2, 4],
      columns: [[1, null, -3], [undefined, 5, undefined]],
      marks: [{ x: 2, kind: "nan", series: 0 }],
    });
  });

  it("counts time from the first point", () => {
    expect(toTable(both, "time").x).toEqual([0, 2, 4]);
  });

  it("leaves out on a logarithmic scale what has no logarithm", () => {
    expect(toTable(both, "step", true).columns[0]).toEqual([1, null, null]);
  });
});

it("finds the time of a step", () => {
  const lines = [series("a", [[0, 100, 1], [10, 130, 1]])];
  expect(placeOfStep(lines, 5, "step")).toBe(5);
  expect(placeOfStep(lines, 5, "time")).toBe(30);
  expect(placeOfStep(lines, 50, "time")).toBeNull();
});

it("smooths without a bias at the start, over gaps", () => {
  expect(smooth([4, null, 4, undefined, 4], 0.9).map((value) => value && Math.round(value))).toEqual(
    [4, null, 4, undefined, 4],
  );
  const [, second] = smooth([0, 1], 0.5);
  expect(second).toBeCloseTo(2 / 3);
});
