import { expect, test } from "vitest";

import { columnsOf, DEFAULT, toggled } from "./columns";

test("columns stand in their order, whatever order they are named in", () => {
  expect(columnsOf("age,state,nonsense")).toEqual(["state", "age"]);
  expect([columnsOf(""), columnsOf(null)]).toEqual([DEFAULT, DEFAULT]);
});

test("a column is shown or hidden, and some are always left", () => {
  expect(toggled(["state", "age"], "user")).toEqual(["state", "user", "age"]);
  expect(toggled(["state", "age"], "state")).toEqual(["age"]);
  expect(toggled(["age"], "age")).toEqual(DEFAULT);
});
