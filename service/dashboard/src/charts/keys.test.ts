import { describe, expect, it } from "vitest";

import { nextRow, rangeOfKey, within } from "./keys";

const shown = { start: 100, end: 200 };

describe("rangeOfKey", () => {
  it("moves by a tenth, and zooms around the middle", () => {
    expect(rangeOfKey("ArrowRight", shown)).toEqual({ start: 110, end: 210 });
    expect(rangeOfKey("ArrowLeft", shown)).toEqual({ start: 90, end: 190 });
    expect(rangeOfKey("+", shown)).toEqual({ start: 115, end: 185 });
    const less = rangeOfKey("-", { start: 115, end: 185 });
    expect([less?.start, less?.end].map((end) => Math.round(end ?? 0))).toEqual([100, 200]);
  });

  it("shows all at 0, and leaves other keys alone", () => {
    expect(rangeOfKey("0", shown)).toBeNull();
    expect(rangeOfKey("Tab", shown)).toBeUndefined();
  });
});

it("keeps a part inside of the whole", () => {
  const whole = { start: 0, end: 100 };
  expect(within({ start: -10, end: 40 }, whole)).toEqual({ start: 0, end: 50 });
  expect(within({ start: 60, end: 110 }, whole)).toEqual({ start: 50, end: 100 });
  expect(within({ start: -20, end: 200 }, whole)).toEqual(whole);
});

it("reads one point after another, or a hundredth of many, and stays inside", () => {
  expect([nextRow(null, 1, [3, 9]), nextRow(undefined, -1, [3, 9]), nextRow(1, 1, [3, 9])]).toEqual([3, 9, 3]);
  expect([nextRow(3, 1, [3, 9]), nextRow(3, -1, [3, 9]), nextRow(9, 1, [3, 9])]).toEqual([4, 3, 9]);
  expect(nextRow(100, 1, [0, 2_000])).toBe(120);
});
