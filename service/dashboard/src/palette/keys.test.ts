import { expect, test } from "vitest";

import { askedBy, isEnter, KEYS, PLACES } from "./keys";

const press = (key: string, more = {}) => ({ key, ctrlKey: false, metaKey: false, altKey: false, ...more });

test("keys ask for the palette, the help and pages", () => {
  expect(askedBy(press("k", { ctrlKey: true }), true, false)).toEqual({ kind: "palette" });
  expect(askedBy(press("K", { metaKey: true }), false, false)).toEqual({ kind: "palette" });
  expect(askedBy(press("?"), false, false)).toEqual({ kind: "help" });
  expect(askedBy(press("g"), false, false)).toEqual({ kind: "prefix" });
  expect(askedBy(press("b"), false, true)).toEqual({ kind: "go", to: "/box" });
});

test("the help lists the key of each page", () => {
  const told = KEYS.flatMap(({ keys }) => [...keys]).filter((key) => key.startsWith("g "));
  expect(told).toEqual(Object.keys(PLACES).map((key) => `g ${key}`));
  expect(askedBy(press("n"), false, true)).toEqual({ kind: "go", to: "/submit" });
});

test("what is typed into a field is left alone", () => {
  expect(askedBy(press("?"), true, false)).toBeNull();
  expect(askedBy(press("b"), true, true)).toBeNull();
  expect(askedBy(press("b"), false, false)).toBeNull();
  expect(askedBy(press("z"), false, true)).toBeNull();
});

test("Enter that ends a composition of an input method is none", () => {
  expect(isEnter({ key: "Enter", nativeEvent: { isComposing: false } })).toBe(true);
  expect(isEnter({ key: "Enter", nativeEvent: { isComposing: true } })).toBe(false);
  expect(isEnter({ key: "e", nativeEvent: { isComposing: false } })).toBe(false);
});
