import { expect, test, vi } from "vitest";

import { Throttle } from "./throttle";

test("a call happens at once, and what comes soon after it once, later", () => {
  vi.useFakeTimers();
  const throttle = new Throttle();
  const calls: string[] = [];
  for (const call of ["a", "b", "c"]) throttle.run("list", 1_000, () => calls.push(call));
  throttle.run("other", 1_000, () => calls.push("other"));
  expect(calls).toEqual(["a", "other"]);
  vi.advanceTimersByTime(1_000);
  expect(calls).toEqual(["a", "other", "c"]);
  vi.advanceTimersByTime(5_000);
  throttle.run("list", 1_000, () => calls.push("d"));
  expect(calls).toEqual(["a", "other", "c", "d"]);
  vi.useRealTimers();
});
