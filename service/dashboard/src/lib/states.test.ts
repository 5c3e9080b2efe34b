import { expect, it } from "vitest";

import { actionsFor, countsPerTab, isFinal, type JobState, keptUntil, TABS } from "./states";

const owner = { user: { name: "ana" }, scopes: ["read", "submit"] };
const job = (state: JobState, more: { held?: boolean; stop?: "cancel" | null; discarded_at?: string } = {}) =>
  [...actionsFor({ user: "ana", project: "vision", state, held: false, stop: null, ...more }, owner)].sort();

it("sums states into tabs", () => {
  const counts = countsPerTab({ queued: 2, running: 1, stopping: 3, failed: 4 });
  expect(counts).toEqual({ all: "10", waiting: "2", active: "4", succeeded: "0", failed: "4", cancelled: "0" });
  const many = countsPerTab({ running: 1, failed: 10_000 }, ["failed", "cancelled"]);
  expect([many.all, many.cancelled]).toEqual([`${(10_001).toLocaleString()}+`, "0+"]);
  expect(many.active).toBe("1");
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
  expect(job("running")).toEqual(["cancel", "checkpoint", "edit", "rerun", "stacks"]);
  expect(job("queued")).toEqual(["cancel", "edit", "hold", "rerun"]);
  expect(job("queued", { held: true })).toEqual(["cancel", "edit", "release", "rerun"]);
  expect(job("stopping", { stop: "cancel" })).toEqual(["edit", "rerun"]);
  expect(job("succeeded")).toEqual(["discard", "rerun"]);
  expect(job("failed", { discarded_at: "2026-01-01T00:00:00Z" })).toEqual(["rerun"]);
});

it("offers others what they may do", () => {
  const running = { user: "ana", project: "vision", state: "running", held: false, stop: null } as const;
  expect([...actionsFor(running, { ...owner, user: { name: "ben" } })]).toEqual(["rerun"]);
  expect([...actionsFor(running, { ...owner, scopes: ["read"] })]).toEqual([]);
});

it("offers public links to whoever may change a job, where there are any", () => {
  const running = { user: "ana", project: "vision", state: "running", held: false, stop: null } as const;
  expect(actionsFor(running, { ...owner, shared_links: true }).has("share")).toBe(true);
  expect(actionsFor({ ...running, state: "failed" }, { ...owner, shared_links: true }).has("share")).toBe(true);
  expect(actionsFor(running, { ...owner, shared_links: false }).has("share")).toBe(false);
  expect(actionsFor(running, { ...owner, user: { name: "ben" }, shared_links: true }).has("share")).toBe(false);
});

it("knows when the files of an ended job go", () => {
  const ended = { ended_at: "2026-01-01T00:00:00Z", tags: ["a"], discarded_at: null };
  expect(keptUntil(ended, 90 * 86_400)).toBe("2026-04-01T00:00:00.000Z");
  expect(keptUntil(ended, null)).toBeNull();
  expect(keptUntil({ ...ended, tags: ["a", "keep"] }, 86_400)).toBeNull();
  expect(keptUntil({ ...ended, ended_at: null }, 86_400)).toBeNull();
  expect(keptUntil({ ...ended, discarded_at: "2026-01-02T00:00:00Z" }, 86_400)).toBeNull();
});
