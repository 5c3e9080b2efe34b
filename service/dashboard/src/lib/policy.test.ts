import { expect, it } from "vitest";

import { spanWords } from "./policy";

it("tells spans as people read them, and one that is off", () => {
  expect([604_800, "4h", null].map(spanWords)).toEqual(["7d", "4h", "off"]);
});
