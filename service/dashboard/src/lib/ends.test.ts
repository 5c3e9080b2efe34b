import { expect, it } from "vitest";

import { bestOf, endsOf } from "./ends";

it("knows the good end of a metric", () => {
  const ends = endsOf([{ job: "a", name: "loss", min: 1, max: 9 }, { job: "a", name: "val/acc", min: 0.1, max: 0.9 }]);
  expect([bestOf(ends, "a", "loss"), bestOf(ends, "a", "val/acc")]).toEqual([1, 0.9]);
  expect([bestOf(ends, "a", "lr"), bestOf(ends, "b", "loss")]).toEqual([undefined, undefined]);
});
