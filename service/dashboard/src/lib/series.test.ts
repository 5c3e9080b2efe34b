import { describe, expect, it } from "vitest";

import type { Series } from "../api/types";
import { labels, lastValue, meanOf, mergeSeries, placeOfStep, type Point, smooth, toTable } from "./series";

const series = (name: string, points: Point[], rank = 0): Series => ({ name, rank, points });

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

describe("toTable of buckets", () => {
  const mixed: Series = {
    ...series("a", [[15, 115, "nan"], [20, 120, 7]]),
    buckets: {
      first_step: [0, 10], last_step: [9, 19], first_time: [100, 110], last_time: [109, 119],
      count: [10, 9], min: [-1, 2], mean: [1, 3], max: [4, 5],
    },
  };

  it("puts a bucket in its middle, with its bounds; a point is its own", () => {
    const { x, columns, bands, spans, marks } = toTable([mixed], "step");
    expect(x).toEqual([4.5, 14.5, 15, 20]);
    expect(columns).toEqual([[1, 3, null, 7]]);
    expect(bands).toEqual([{ low: [-1, 2, null, 7], high: [4, 5, null, 7] }]);
    expect(spans.get(14.5)).toEqual([10, 19]);
    expect(marks).toEqual([{ x: 15, kind: "nan", series: 0 }]);
    expect(toTable([mixed], "time").x).toEqual([4.5, 14.5, 15, 20]);
  });

  it("ends a band on a logarithmic scale at the smallest value that there is", () => {
    expect(toTable([mixed], "step", true).bands?.[0]?.low).toEqual([1, 2, null, 7]);
  });
});

describe("toTable", () => {
  const both = [series("a", [[0, 100, 1], [2, 102, "nan"], [4, 104, -3]]), series("b", [[2, 102, 5]])];

  it("aligns steps; a value that is no number breaks the line and is marked", () => {
    expect(toTable(both, "step")).toMatchObject({
      x: [0, 2, 4],
      columns: [[1, null, -3], [undefined, 5, undefined]],
      bands: null,
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

it("smooths a value that stands for several as it would them", () => {
  const [each] = smooth([0, 1, 1, 1], 0.5).slice(-1);
  expect(smooth([0, 1], 0.5, (index) => (index === 0 ? 1 : 3))[1]).toBeCloseTo(each ?? NaN);
});

it("means all points of the lowest rank, those too that are in buckets", () => {
  const buckets = {
    first_step: [0], last_step: [2], first_time: [1], last_time: [2], count: [3], min: [0], mean: [0.5], max: [1],
  };
  const known = [series("data_wait", [[3, 3, 0.1], [4, 4, "nan"]]), series("data_wait", [[0, 1, 9]], 1)];
  expect(meanOf(known.map((one) => (one.rank === 0 ? { ...one, buckets } : one)), "data_wait")).toBeCloseTo(0.4);
  expect(meanOf(known, "loss")).toBeNull();
});

it("takes for the newest value what has the last step, in buckets or not", () => {
  const buckets = {
    first_step: [0, 10], last_step: [9, 19], first_time: [1, 2], last_time: [2, 3],
    count: [9, 10], min: [1, 1], mean: [2, 1], max: [4, 2],
  };
  expect(lastValue({ ...series("loss", [[5, 1, "nan"]]), buckets })).toBe(1);
  expect(lastValue({ ...series("loss", [[5, 1, "nan"], [20, 4, "inf"]]), buckets })).toBe("inf");
  expect(lastValue(series("loss", [[5, 1, 0.5]]))).toBe(0.5);
  expect(lastValue(series("loss", []))).toBeUndefined();
});
