import { expect, test } from "vitest";

import { COLUMNS, columnsOf, DEFAULT, FIRST, toggled } from "./columns";

test("columns stand in their order, whatever order they are named in", () => {
  expect(columnsOf("age,state,nonsense")).toEqual(["state", "age"]);
  expect([columnsOf(""), columnsOf(null)]).toEqual([DEFAULT, DEFAULT]);
});

test("a column is shown or hidden, and some are always left", () => {
  expect(toggled(["state", "age"], "user")).toEqual(["state", "user", "age"]);
  expect(toggled(["state", "age"], "state")).toEqual(["age"]);
  expect(toggled(["age"], "age")).toEqual(DEFAULT);
});

/** The page at 1024 pixels, without its margins, the panel's edges and a scroll bar. */
const ROOM = 1024 - 2 * 20 - 2 - 15;

test("the columns that are shown at first lie in view on a small laptop", () => {
  const tracks = [...FIRST, ...COLUMNS.filter(({ key }) => DEFAULT.includes(key)).map(({ width }) => width)];
  const least = tracks.map((track) => Number(/(\d+)px/.exec(track)?.[1]));
  expect(least.reduce((sum, width) => sum + width)).toBeLessThanOrEqual(ROOM);
});
