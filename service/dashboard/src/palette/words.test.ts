import { expect, test } from "vitest";

import { hasWords } from "./words";

test("what has each of the words is found, and nothing by single letters", () => {
  expect(hasWords("Hold this job", "hold THIS")).toBe(1);
  expect(hasWords("12 gb-resnet", "res 12")).toBe(1);
  expect(hasWords("12 gb-resnet", "")).toBe(1);
  expect(hasWords("Compare runs", "resn")).toBe(0);
  expect(hasWords("12 gb-resnet", "tag:a", ["tag:a"])).toBe(1);
});
