import { expect, it } from "vitest";

import { shifted, weekOf } from "./weeks";

it("names ISO weeks, also around New Year", () => {
  const days = ["2026-11-21", "2026-11-22", "2026-11-23", "2027-01-03", "2027-01-04", "2024-12-30"];
  expect(days.map((day) => weekOf(Date.parse(`${day}T12:00:00Z`)))).toEqual(
    ["2026-W47", "2026-W47", "2026-W48", "2026-W53", "2027-W01", "2025-W01"],
  );
});

it("goes from week to week", () => {
  expect(shifted("2026-W53", 1)).toBe("2027-W01");
  expect(shifted("2027-W01", -1)).toBe("2026-W53");
  expect(shifted("2026-W10", 0)).toBe("2026-W10");
});
