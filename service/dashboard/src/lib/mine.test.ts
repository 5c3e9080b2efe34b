import { expect, test } from "vitest";

import { mineOf } from "./mine";

const NOW = Date.parse("2026-11-27T12:00:00Z");
const job = (name: string, ended_at: string | null = null) => ({ name, ended_at });
const page = (names: string, next: string | null = null) => ({ items: names.split(" ").filter(Boolean).map((name) => job(name)), next });

test("what runs stands before what waits, and what ended in the last day comes last", () => {
  const ended = { items: [job("new", "2026-11-27T11:00:00Z"), job("old", "2026-11-26T11:00:00Z")], next: "x" };
  const mine = mineOf(page("a b"), page("c d"), ended, NOW);
  expect(mine.jobs.map(({ name }) => name)).toEqual(["a", "b", "c", "d", "new"]);
  expect(mine.more).toBe(false);
});

test("it is told that more jobs run or wait than are shown", () => {
  const none = page("");
  expect(mineOf(page("a", "9"), none, none, NOW).more).toBe(true);
  expect(mineOf(none, page("a", "9"), none, NOW).more).toBe(true);
});
