import { expect, it } from "vitest";

import { lineColor } from "./colors";

it("gives each of many lines a colour of its own, in either theme", () => {
  for (const dark of [false, true]) {
    const colors = Array.from({ length: 64 }, (_, place) => lineColor(place, dark));
    expect(new Set(colors).size).toBe(64);
  }
  expect(lineColor(0, false)).toBe("var(--series-1)");
});
