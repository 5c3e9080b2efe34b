import { expect, it } from "vitest";

import { stack } from "./stacking";

const rowsOf = (spans: [number, number][]) => stack(spans, ([from]) => from, ([, until]) => until);

it("gives each the first row that is free at its beginning", () => {
  const { stacked, rows } = rowsOf([[0, 4], [1, 2], [2, 5], [4, 6], [4, 5]]);
  expect(stacked.map(({ row }) => row)).toEqual([0, 1, 1, 0, 2]);
  expect(rows).toBe(3);
});

it("has a row where there is nothing", () => {
  expect(rowsOf([])).toEqual({ stacked: [], rows: 1 });
});
