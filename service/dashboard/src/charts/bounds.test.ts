import { expect, test } from "vitest";

import { shownBounds } from "./bounds";

test("chosen bounds are those of a linear axis, and of a logarithmic one where it can show them", () => {
  expect(shownBounds([-1, 1], false, null)).toEqual([-1, 1]);
  expect(shownBounds([0.1, 1], true, 0.5)).toEqual([0.1, 1]);
});

test("a logarithmic axis begins at the data where it was to begin at zero or below", () => {
  expect(shownBounds([0, 1], true, 0.25)).toEqual([0.25, 1]);
  expect(shownBounds([-1, 1], true, 2)).toEqual([0.001, 1]);
  expect(shownBounds([0, 1], true, null)).toEqual([0.001, 1]);
  expect(shownBounds([-2, -1], true, 1)).toBeNull();
});
