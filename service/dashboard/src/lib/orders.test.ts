import { expect, it } from "vitest";

import { nextOrder, orderOf, sortOf } from "./orders";

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
});
