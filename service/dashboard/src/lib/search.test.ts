import { expect, it } from "vitest";

import { hasFilters, parseSearch, withFilter } from "./search";

it("reads known filters and leaves the rest out", () => {
  const raw = { tab: "failed", user: "user-1", q: 12, project: "", other: "x", tag: ["a"] };
  expect(parseSearch(raw)).toEqual({ tab: "failed", user: "user-1", q: "12" });
  expect(parseSearch({ tab: "nonsense" })).toEqual({});
  expect(parseSearch({ tab: "all" })).toEqual({});
});

it("starts at the newest job when a filter changes", () => {
  const search = { tab: "failed", cursor: "40" } as const;
  expect(withFilter(search, { user: "user-1" })).toEqual({ tab: "failed", user: "user-1" });
  expect(withFilter({ user: "user-1" }, { user: undefined })).toEqual({});
});

it("does not take a page for a filter", () => {
  expect(hasFilters({ cursor: "40" })).toBe(false);
  expect(hasFilters({ q: "a" })).toBe(true);
});
