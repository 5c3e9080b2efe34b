import { expect, it } from "vitest";

import { withoutTime } from "./waiting";

it("leaves out when enough is free, and keeps how", () => {
  const held = "node a has 0 GPUs free and the job needs 2; the rest is held by job 2 (bob)";
  const enough = `${held}; enough is expected to be free at about 2026-11-25 22:16 UTC`;
  expect(withoutTime(enough)).toBe(held);
  expect(withoutTime(`${enough}, when others are preempted for it`)).toBe(`${held}; others are preempted for it`);
  expect(withoutTime(held)).toBe(held);
});
