import { expect, it } from "vitest";

import { placeOf, withoutTime } from "./waiting";

it("leaves out when enough is free, and keeps how", () => {
  const held = "node a has 0 GPUs free and the job needs 2; the rest is held by job 2 (bob)";
  const enough = `${held}; enough is expected to be free at about 2026-11-25 22:16 UTC`;
  expect(withoutTime(enough)).toBe(held);
  expect(withoutTime(`${enough}, when others are preempted for it`)).toBe(`${held}; others will be preempted for it`);
  expect(withoutTime(held)).toBe(held);
});

it("tells a place where a job waits for its turn alone", () => {
  const places = [{ held: false, blocked: false }, { held: true, blocked: false }, { held: false, blocked: true }];
  expect(places.map((one) => placeOf({ place: 3, ...one }))).toEqual([3, null, null]);
  expect(placeOf({ held: false, blocked: false })).toBeNull();
});
