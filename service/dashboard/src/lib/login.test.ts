import { expect, test } from "vitest";

import { codeOf } from "./login";

test("a sign-in link brings its code, and one that was cut is for the service to refuse", () => {
  expect(codeOf("#login=ty_a%2Bb")).toBe("ty_a+b");
  expect(codeOf("#login=%")).toBe("%");
  expect(codeOf("#login=ab%E4")).toBe("ab%E4");
  expect([codeOf(""), codeOf("#login="), codeOf("#content")]).toEqual([null, null, null]);
});
