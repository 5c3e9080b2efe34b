import { expect, test } from "vitest";

import { current, record } from "./outage";

test("the last answer's time stays while the service is away", () => {
  record(true, 1_000);
  record(true, 2_000);
  expect(current()).toBeNull();
  record(false, 3_000);
  record(false, 4_000);
  expect(current()).toEqual({ lastAnswerAt: 2_000 });
  record(true, 5_000);
  expect(current()).toBeNull();
  record(false, 6_000);
  expect(current()).toEqual({ lastAnswerAt: 5_000 });
});

test("what shows it is given a new object when that changes, and only then", () => {
  record(true, 1_000);
  record(false, 3_000);
  const before = current();
  record(false, 4_000);
  expect(current()).toBe(before);
  record(true, 5_000);
  expect(current()).not.toBe(before);
});
