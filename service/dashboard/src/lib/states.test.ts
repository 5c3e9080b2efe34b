import { expect, it } from "vitest";

import { actionsFor, countsPerTab, isFinal, type JobState, TABS } from "./states";

const job = (state: JobState, more: { held?: boolean; stop?: "cancel" | null } = {}) =>
  [...actionsFor({ state, held: more.held ?? false, stop: more.stop ?? null })].sort();

it("sums states into tabs", () => {
  const counts = countsPerTab({ queued: 2, running: 1, stopping: 3, failed: 4 });
  expect(counts).toEqual({ all: 10, waiting: 2, active: 4, succeeded: 0, failed: 4, cancelled: 0 });
});

it("puts every state into one tab", () => {
  const states = TABS.flatMap((tab) => [...tab.states]);
  expect(new Set(states).size).toBe(states.length);
  expect(states).toHaveLength(9);
});

it("knows what ends a job", () => {
  expect(isFinal("failed")).toBe(true);
  expect(isFinal("unreachable")).toBe(false);
});

it("offers what a state allows", () => {
  expect(job("running")).toEqual(["cancel", "checkpoint", "rerun", "stacks"]);
  expect(job("queued")).toEqual(["cancel", "hold", "rerun"]);
  expect(job("queued", { held: true })).toEqual(["cancel", "release", "rerun"]);
  expect(job("stopping", { stop: "cancel" })).toEqual(["rerun"]);
  expect(job("succeeded")).toEqual(["rerun"]);
});
