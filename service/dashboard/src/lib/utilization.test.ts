import { expect, it } from "vitest";

import { keyOf, newestOf, stepsOf, toldAt, type Use, usesOf } from "./utilization";

const since = Date.parse("2026-11-26T08:00:00Z");
const use: Use = {
  since, bucket: 1_000, ofNode: false, utilization: [0, null, 50, 100], memory: [null, null, null, 25],
};
/** Four buckets, and as much time again to come. */
const window = { from: since, now: since + 3_500, to: since + 8_000 };

it("draws a gap where nothing is known, and nothing beyond now", () => {
  expect(stepsOf(use.utilization, use, window)).toEqual({
    area: "M0 100V100H12.5V100ZM25 100V50H37.5V0H43.75V100Z",
    line: "M0 100H12.5M25 50H37.5V0H43.75",
  });
  expect(stepsOf([null, null], use, window)).toEqual({ area: "", line: "" });
});

it("tells what is known of a moment, and never a false zero", () => {
  expect(toldAt(use, since)).toEqual(["GPU busy 0 %"]);
  expect(toldAt(use, since + 1_500)).toBeNull();
  expect(toldAt(use, since - 1)).toBeNull();
  expect(toldAt({ ...use, ofNode: true }, since + 3_200)).toEqual(["processors of the node busy 100 %", "memory 25 % held"]);
  expect(newestOf(use)).toEqual(["GPU busy 100 %", "memory 25 % held"]);
});

it("leaves out devices of which nothing is known", () => {
  const of = (uuid: string, value: number | null) => ({ node: "box", uuid, of_node: false, utilization: [value], memory: [null] });
  const found = usesOf({ since: "2026-11-26T08:00:00Z", bucket_s: 1, devices: [of("a", 0), of("b", null)] });
  expect(found.get(keyOf("box", "a"))).toMatchObject({ since, bucket: 1_000, utilization: [0] });
  expect(found.get(keyOf("box", "b"))).toBeUndefined();
  expect(usesOf(undefined).size).toBe(0);
});
