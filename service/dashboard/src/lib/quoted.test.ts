import { expect, it } from "vitest";

import { quoted } from "./quoted";

it("takes what stands in backticks as code", () => {
  expect(quoted("start one with `yard up` or `yard worker`")).toEqual([
    { text: "start one with ", code: false },
    { text: "yard up", code: true },
    { text: " or ", code: false },
    { text: "yard worker", code: true },
  ]);
});

it("leaves what is not a pair as it is", () => {
  expect(quoted("a ` alone")).toEqual([{ text: "a ` alone", code: false }]);
  expect(quoted("")).toEqual([]);
});
