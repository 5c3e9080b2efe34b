import { QueryClient } from "@tanstack/react-query";
import { expect, test } from "vitest";

import type { Section } from "../lib/sections";
import { jobsBetween, PAGE, type Place } from "./table";

const section: Section = { key: "ended", title: "Ended", count: 2 * PAGE, more: false, query: { order: "newest" } };

/** A cache of two pages of jobs, the first of them named so. */
function cacheOf(...first: string[]): QueryClient {
  const cache = new QueryClient();
  const ids = [...first, ...Array.from({ length: 2 * PAGE - first.length }, (_, at) => `job ${at}`)];
  for (const page of [0, 1]) {
    const items = ids.slice(page * PAGE, (page + 1) * PAGE).map((id) => ({ id }));
    cache.setQueryData(["jobs", "list", { ...section.query, limit: PAGE, offset: page * PAGE }], { items });
  }
  return cache;
}

const idsBetween = async (cache: QueryClient, one: Place, other: Place, most = 2_000) => (
  (await jobsBetween(cache, section, one, other, most)).map(({ id }) => id)
);

test("jobs are found from one place to another, either way, and no more than are asked for", async () => {
  const cache = cacheOf("a", "b", "c");
  expect(await idsBetween(cache, { place: 2 }, { place: 1 })).toEqual(["b", "c"]);
  expect(await idsBetween(cache, { place: 0 }, { place: 2 }, 2)).toEqual(["a", "b"]);
  expect(await idsBetween(cache, { place: 1 }, { place: PAGE + 50 })).toHaveLength(PAGE + 50);
});

test("a range begins at the job that was clicked first, though newer ones have come above it", async () => {
  const first = { job: "a", place: 0 };
  expect(await idsBetween(cacheOf("newer", "new", "a", "b", "c"), first, { job: "c", place: 4 })).toEqual(["a", "b", "c"]);
  // That one is no longer in the list.
  expect(await idsBetween(cacheOf("b", "c"), first, { job: "c", place: 1 })).toEqual(["b", "c"]);
});
