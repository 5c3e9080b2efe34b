import { expect, it } from "vitest";

import { jobTitle } from "./title";

it("says in a tab how a job stands", () => {
  expect(jobTitle({ state: "succeeded", number: 5, name: "digits-ddp" })).toBe("✓ 5 digits-ddp");
  expect(jobTitle({ state: "failed", number: 6, name: "resnet" })).toBe("✗ 6 resnet");
});
