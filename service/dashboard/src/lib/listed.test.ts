import { expect, test } from "vitest";

import type { Job } from "../api/types";
import { withTold } from "./listed";

const job = (id: string, state: Job["state"], version = 1, place: number | null = null) => (
  { id, state, version, place } as Job
);
const QUEUE = [job("a", "queued", 1, 1), job("b", "queued", 1, 2)];

test("a job that starts leaves the list of those that wait", () => {
  expect(withTold(QUEUE, ["queued"], job("a", "assigned", 2))).toEqual([job("b", "queued", 1, 2)]);
});

test("a job stays in a list that asks for its new state, or for none, and keeps its place", () => {
  expect(withTold(QUEUE, ["queued"], { ...job("a", "queued", 2), held: true })).toEqual([
    { ...job("a", "queued", 2, 1), held: true }, job("b", "queued", 1, 2),
  ]);
  expect(withTold([job("a", "starting")], ["starting", "running"], job("a", "running", 2))).toEqual([
    job("a", "running", 2),
  ]);
  expect(withTold(QUEUE, [], job("b", "failed", 2))?.map(({ state }) => state)).toEqual(["queued", "failed"]);
});

test("a list without the job, or with a newer version of it, stays as it is", () => {
  expect(withTold(QUEUE, ["queued"], job("c", "running"))).toBeNull();
  expect(withTold([job("a", "running", 3)], ["running"], job("a", "queued", 2))).toBeNull();
});
