import { expect, it } from "vitest";

import { tabOf } from "./jobTabs";

it("opens the overview at the job's own address", () => {
  expect(tabOf(undefined)).toBe("overview");
});

it("finds the tab that an address names, and none for a word that is no tab", () => {
  expect([tabOf("charts"), tabOf("log"), tabOf("nowhere")]).toEqual(["charts", "log", null]);
});
