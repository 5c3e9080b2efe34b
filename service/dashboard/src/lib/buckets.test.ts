import { describe, expect, it } from "vitest";

import type { Series } from "../api/types";
import { acrossRanks, BUDGET, compact, splice } from "./buckets";
import type { Point } from "./series";

const line = (from: number, to: number, value: (step: number) => number | "nan" = (step) => step): Series => ({
  name: "loss",
  rank: 0,
  points: Array.from({ length: to - from }, (_, n): Point => [from + n, 1000 + from + n, value(from + n)]),
});

describe("compact", () => {
  it("leaves what fits", () => {
    const short = line(0, 2 * BUDGET);
    expect(compact(short, "step")).toBe(short);
  });

  it.each(["step", "time"] as const)("holds every point between the bounds of its bucket, by %s", (axis) => {
    const noisy = (step: number) => (step === 777 ? "nan" : Math.sin(step * step));
    const once = compact(line(0, 3000, noisy), axis);
    const grown = compact({ ...once, points: [...once.points, ...line(3000, 6000, noisy).points] }, axis);
    const { buckets } = grown;
    expect(grown.points).toEqual([[777, 1777, "nan"]]);
    expect(buckets?.count.length).toBeLessThanOrEqual(BUDGET);
    expect(buckets?.count.reduce((sum, count) => sum + count)).toBe(5999);
    buckets?.count.forEach((count, n) => {
      const [first = NaN, last = NaN] = [buckets.first_step[n], buckets.last_step[n]];
      const inside = line(first, last + 1, noisy).points.flatMap(([, , value]) => (value === "nan" ? [] : [Number(value)]));
      expect(inside.length).toBe(count);
      expect(buckets.min[n]).toBe(Math.min(...inside));
      expect(buckets.max[n]).toBe(Math.max(...inside));
      expect(buckets.mean[n]).toBeCloseTo(inside.reduce((sum, value) => sum + value) / count, 9);
    });
  });
});

describe("splice", () => {
  it("puts the closer part into the whole, which goes on after it", () => {
    const whole = compact(line(0, 5000), "step");
    const detail = { range: { start: 1000, end: 1500 }, series: [line(1000, 1501)] };
    const [spliced] = splice([whole], detail, "step");
    expect(spliced?.points).toEqual(detail.series[0]?.points);
    const firsts = spliced?.buckets?.first_step ?? [];
    const lasts = spliced?.buckets?.last_step ?? [];
    expect(firsts.every((first, n) => (lasts[n] ?? 0) < 1000 || first > 1500)).toBe(true);
    expect([firsts[0], lasts.at(-1)]).toEqual([0, 4999]);
  });

  it("keeps points that have come since the part was read", () => {
    const detail = { range: { start: 10, end: 100 }, series: [line(10, 50)] };
    expect(splice([line(0, 60)], detail, "step")[0]?.points).toEqual(line(0, 60).points);
  });
});

it("leaves the whole as it is where nothing is known more closely", () => {
  const detail = { range: { start: 10, end: 20 }, series: [line(10, 10)] };
  expect(splice([line(0, 60)], detail, "step")).toEqual([line(0, 60)]);
});

it("keeps a mark in each part of a run that diverges for long, and the last", () => {
  const { points } = compact(line(0, 50_000, () => "nan"), "step");
  expect(points.length).toBeLessThanOrEqual(BUDGET + 1);
  expect([points[0]?.[0], points.at(-1)?.[0]]).toEqual([0, 49_999]);
});

it("brings the ranks of a metric together, with bounds that hold all of them", () => {
  const ranks = [0, 1, 2].map((rank) => ({ ...line(0, 2, (step) => (step === 1 && rank === 2 ? "nan" : step + rank)), rank }));
  const [one, ...others] = acrossRanks([...ranks, { ...line(0, 1), name: "lr" }]);
  expect(one?.buckets).toMatchObject({ first_step: [0, 1], count: [3, 2], min: [0, 1], mean: [1, 1.5], max: [2, 2] });
  expect(one?.points).toEqual([[1, 1001, "nan"]]);
  expect(others).toEqual([{ ...line(0, 1), name: "lr" }]);
});
