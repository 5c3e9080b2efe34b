import { expect, test } from "vitest";

import { shownName } from "./jobWords";

test("the name of a job that is not for the viewer is not shown, whatever stands for it", () => {
  expect(shownName("resnet", true)).toBe("resnet");
  expect([shownName("resnet", false), shownName(null, false)]).toEqual(["(not shown)", "(not shown)"]);
});
