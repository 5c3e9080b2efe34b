import { expect, it } from "vitest";

import type { Event } from "../api/types";
import type { JobState } from "./states";
import { spans, spent } from "./timeline";

const event = (seq: number, state: JobState, second: number): Event => ({
  seq, state, at: new Date(second * 1000).toISOString(), kind: state, attempt: 1, actor: null, message: "", data: {},
});

const UNTOLD = { started_at: null, ended_at: null };

it("makes spans of changes, the last one open until now", () => {
  const line = spans([event(1, "queued", 0), event(2, "running", 10), event(3, "running", 20)], UNTOLD, 40_000);
  expect(line.map(({ state, from, to, open }) => [state, from, to, open])).toEqual([
    ["queued", 0, 10_000, false],
    ["running", 10_000, 40_000, true],
  ]);
});

it("ends at a final state, and widens what is too short to see", () => {
  const line = spans([event(1, "queued", 0), event(2, "running", 1), event(3, "failed", 1001)], UNTOLD, 9e9);
  expect(line.map((span) => span.state)).toEqual(["queued", "running"]);
  expect(line[0]?.share).toBeGreaterThan(0.03);
  expect(line.reduce((sum, span) => sum + span.share, 0)).toBeCloseTo(1);
});

it("is not prolonged by what is done to a job that has ended", () => {
  const line = spans([event(1, "running", 0), event(2, "succeeded", 10), event(3, "succeeded", 5000)], UNTOLD, 9e9);
  expect(line.map(({ from, to, open }) => [from, to, open])).toEqual([[0, 10_000, false]]);
});

it("is empty without events", () => {
  expect(spans([], UNTOLD, 0)).toEqual([]);
});

it("runs for as long as the job says that it ran", () => {
  const at = (second: number) => new Date(second * 1000).toISOString();
  const events = [event(1, "queued", 0), event(2, "running", 12), event(3, "succeeded", 25)];
  const line = spans(events, { started_at: at(10), ended_at: at(20) }, 9e9);
  expect(line.map(({ from, to }) => [from, to])).toEqual([[0, 10_000], [10_000, 20_000]]);
  const again = spans([...events.slice(0, 2), event(3, "queued", 30), event(4, "running", 40)], {
    started_at: at(10), ended_at: null,
  }, 50_000);
  expect(again.map(({ from, to }) => [from / 1000, to / 1000])).toEqual([[0, 10], [10, 30], [30, 40], [40, 50]]);
});

it("adds up where the time went, over all attempts, and tells waiting for data from running", () => {
  const line = [
    { state: "queued", from: 0, to: 60_000 }, { state: "starting", from: 60_000, to: 70_000 },
    { state: "running", from: 70_000, to: 170_000 }, { state: "queued", from: 170_000, to: 200_000 },
    { state: "running", from: 200_000, to: 300_000 },
  ] as const;
  expect(spent(line, 0.25).map(({ key, seconds }) => [key, seconds])).toEqual(
    [["queue", 90], ["start", 10], ["data", 50], ["steps", 150]],
  );
  expect(spent(line, null).map(({ key }) => key)).toEqual(["queue", "start", "steps"]);
});
