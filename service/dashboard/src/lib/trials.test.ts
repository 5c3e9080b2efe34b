import { expect, it } from "vitest";

import type { Group, Job } from "../api/types";
import { goodness, parameter, search, sortTrials, stateOf, trialColor, valueOf, values } from "./trials";

const trial = (number: number, parameters: Record<string, unknown>, acc?: number | "nan" | "inf") =>
  ({ trial: number, number, parameters, latest: acc === undefined ? {} : { acc }, state: "running" }) as unknown as Job;
const numbers = (trials: readonly Job[]) => trials.map((one) => one.trial);

it("tells parameters in words", () => {
  expect([parameter(0.00001), parameter("adam"), parameter(null), parameter(true)]).toEqual(["1.0e-5", "adam", "null", "true"]);
  expect(values([1, 2])).toBe("1, 2");
  expect(values({ loguniform: [0.001, 0.1] })).toBe("log-uniform, 0.001 to 0.1");
  expect(values({ range: [0, 9] })).toBe("0 to 9, the last left out");
});

it("tells how a sweep searches", () => {
  const sweep = (spec: object) => search({ sweep: spec } as Group);
  expect(sweep({ parameters: {}, trials: null, running: null, stop: null })).toBe("grid");
  expect(sweep({ trials: 12, running: 4, stop: { metric: "acc", first: 46, reduction: 3 } })).toBe(
    "random search, at most 4 at once, the best in 3 by acc go on from step 46",
  );
});

it("tells what a sweep as a whole is", () => {
  const sweep = (states: Group["states"], ended: boolean, early = 0) =>
    stateOf({ states, stopped_early: early, ended_at: ended ? "2026-11-22T00:00:00Z" : null });
  expect(sweep({ running: 1, failed: 3 }, false)).toBe("running");
  expect(sweep({ queued: 1, failed: 3 }, false)).toBe("queued");
  expect(sweep({ cancelled: 5, failed: 3 }, true)).toBe("cancelled");
  expect(sweep({ cancelled: 5, succeeded: 3 }, true, 5)).toBe("succeeded");
  expect(sweep({ failed: 1, succeeded: 3 }, true)).toBe("failed");
});

it("takes what is no number for no value", () => {
  expect([valueOf(trial(1, {}, "nan"), "acc"), valueOf(trial(1, {}), "acc"), valueOf(trial(1, {}, "inf"), "acc")]).toEqual(
    [null, null, Infinity],
  );
});

it("sorts by value or parameter, what has none last", () => {
  const trials = [trial(1, { lr: 0.1 }, 0.5), trial(2, { lr: 0.01 }), trial(3, { lr: 0.03 }, 0.9), trial(4, { lr: 0.1 }, "nan")];
  expect(numbers(sortTrials(trials, { key: "value", falling: true }, "acc"))).toEqual([3, 1, 2, 4]);
  expect(numbers(sortTrials(trials, { key: "value", falling: false }, "acc"))).toEqual([1, 3, 2, 4]);
  expect(numbers(sortTrials(trials, { key: "parameter:lr", falling: false }, "acc"))).toEqual([2, 3, 1, 4]);
  expect(numbers(sortTrials(trials, { key: "trial", falling: true }, null))).toEqual([4, 3, 2, 1]);
});

it("colours trials by the rank of their value, and what failed as such", () => {
  const trials = [trial(1, {}, 0.5), trial(2, {}), trial(3, {}, 0.9), trial(4, {}, 0.7)];
  expect(goodness(trials, "acc", "max")).toEqual([0, null, 1, 0.5]);
  expect(goodness(trials, "acc", "min")).toEqual([1, null, 0, 0.5]);
  expect(trialColor({ state: "failed" }, 1)).toBe("var(--c-failed)");
  expect(trialColor({ state: "running" }, null)).toBe("var(--faint)");
  expect(trialColor({ state: "succeeded" }, 0.5)).toContain("50%");
});
