import { expect, test } from "vitest";

import { current, note } from "./reach";

test("the last answer's time stays while the service is away", () => {
  note(true, 1_000);
  note(true, 2_000);
  expect(current()).toEqual({ lost: false, answeredAt: 2_000 });
  note(false, 3_000);
  note(false, 4_000);
  expect(current()).toEqual({ lost: true, answeredAt: 2_000 });
  note(true, 5_000);
  expect(current()).toEqual({ lost: false, answeredAt: 5_000 });
});

test("what shows it is given a new object when that changes, and only then", () => {
  note(true, 1_000);
  const before = current();
  note(true, 2_000);
  expect(current()).toBe(before);
  note(false, 3_000);
  expect(current()).not.toBe(before);
});
