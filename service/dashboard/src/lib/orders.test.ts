import { expect, it } from "vitest";

import { metricOf, nextOrder, orderOf, sortOf } from "./orders";

it("turns a column's order round with each click", () => {
  expect([nextOrder("name", "newest"), nextOrder("name", "name"), nextOrder("name", "-name")]).toEqual(["name", "-name", "name"]);
  expect([nextOrder("ran", "name"), nextOrder("ran", "-duration")]).toEqual(["-duration", "duration"]);
  expect([nextOrder("age", "newest"), nextOrder("tags", "newest")]).toEqual(["oldest", null]);
});

it("says which column is sorted, and how", () => {
  expect([sortOf("priority", "-priority"), sortOf("age", "newest"), sortOf("name", "newest"), sortOf("tags", "newest")])
    .toEqual(["descending", "ascending", undefined, undefined]);
});

it("takes the newest first for what it does not know", () => {
  expect([orderOf("-user"), orderOf("colour"), orderOf(undefined)]).toEqual(["-user", "newest", "newest"]);
  expect([orderOf("max:loss"), orderOf("min:"), orderOf("name:loss")]).toEqual(["newest", "newest", "newest"]);
});

it("goes by a metric's values", () => {
  expect([orderOf("-max:val/acc:1"), nextOrder("name", "min:loss")]).toEqual(["-max:val/acc:1", "name"]);
  expect(["-max:val/acc:1", "metric:loss", "-name", 7].map(metricOf)).toEqual(["val/acc:1", "loss", null, null]);
  expect(sortOf("name", "-metric:name")).toBeUndefined();
});
