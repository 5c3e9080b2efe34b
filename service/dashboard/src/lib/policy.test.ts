import { expect, it } from "vitest";

import type { Policy } from "../api/types";
import { draftOf, policyChanges, spanWords } from "./policy";

it("tells spans as people read them, and one that is off", () => {
  expect([604_800, "4h", null].map(spanWords)).toEqual(["7d", "4h", "off"]);
});

it("sends the fields of a policy that were changed, and no other", () => {
  const policy = { order: "fair", backfill: true, half_life: 604_800, time_slice: 600, no_restarts: ["vision"] } as unknown as Policy;
  const begun = draftOf(policy);
  expect(policyChanges(begun, begun)).toEqual({});
  const texts = { ...begun.texts, half_life: "1d", time_slice: "" };
  expect(policyChanges(begun, { chosen: { ...policy, order: "fifo" }, texts })).toEqual({ order: "fifo", half_life: "1d", time_slice: null });
});
