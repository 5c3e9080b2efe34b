import { expect, test } from "vitest";

import { askedBy } from "./keys";

const press = (key: string, more = {}) => ({ key, ctrlKey: false, metaKey: false, altKey: false, ...more });

test("keys ask for the palette, the help and pages", () => {
  expect(askedBy(press("k", { ctrlKey: true }), true, false)).toEqual({ kind: "palette" });
  expect(askedBy(press("K", { metaKey: true }), false, false)).toEqual({ kind: "palette" });
  expect(askedBy(press("?"), false, false)).toEqual({ kind: "help" });
  expect(askedBy(press("g"), false, false)).toEqual({ kind: "prefix" });
  expect(askedBy(press("b"), false, true)).toEqual({ kind: "go", to: "/box" });
});

test("what is typed into a field is left alone", () => {
  expect(askedBy(press("?"), true, false)).toBeNull();
  expect(askedBy(press("b"), true, true)).toBeNull();
  expect(askedBy(press("b"), false, false)).toBeNull();
  expect(askedBy(press("z"), false, true)).toBeNull();
});
