import { describe, expect, it } from "vitest";

import { age, day, duration, exactDuration, exactly, hour, milliseconds, moment, pieces, secondsBetween } from "./time";

describe("duration", () => {
  it("shows the two largest units", () => {
    expect(duration(8.24)).toBe("8.2s");
    expect(duration(59.9)).toBe("59s");
    expect(duration(725)).toBe("12m 05s");
    expect(duration(3600 * 5 + 120)).toBe("5h 02m");
    expect(duration(86400 * 3 + 3600 * 4)).toBe("3d 4h");
    expect(duration(-5)).toBe("0.0s");
  });
});

it("tells milliseconds to a tenth where they are few, and minutes where they are many", () => {
  const told = [0, 3.44, 1730.2, 361_585].map(milliseconds);
  expect(told).toEqual(["0.0 ms", "3.4 ms", "1,730 ms", "6m 01s"]);
});

it("tells whole spans exactly", () => {
  expect([604_800, 90, 3_600, 60, 0].map(exactDuration)).toEqual(["7d", "90s", "1h", "1m", "0s"]);
});

it("tells ages in one unit", () => {
  expect([age(40), age(600), age(7300), age(500_000)]).toEqual(["40s", "10m", "2h", "5d"]);
});

it("counts to now while there is no end", () => {
  const now = Date.parse("2026-01-01T00:01:00Z");
  expect(secondsBetween("2026-01-01T00:00:00Z", null, now)).toBe(60);
  expect(secondsBetween("2026-01-01T00:00:00Z", "2026-01-01T00:00:05Z", now)).toBe(5);
});

describe("times to come", () => {
  const now = new Date(2026, 10, 21, 12, 0).getTime();
  const at = (day: number, hours: number, minutes: number) => new Date(2026, 10, day, hours, minutes).toISOString();

  it("are told by the hour, and by the day where it is another one", () => {
    expect(hour(at(21, 14, 20), now)).toBe("14:20");
    expect(hour(at(22, 9, 5), now)).toBe("Sun 09:05");
    expect(hour(at(30, 9, 5), now)).toMatch(/30.* 09:05$/);
    expect(hour("1999-03-28T12:00:00Z", now)).toMatch(/28.*1999/);
  });
});

it("tells a time by its zone where all of it is told", () => {
  const at = "2026-11-21T12:00:05Z";
  const written = new Intl.DateTimeFormat(undefined, { timeZoneName: "long" }).formatToParts(new Date(at));
  expect(exactly(at)).toContain("2026");
  expect(exactly(at)).toContain(written.find(({ type }) => type === "timeZoneName")?.value);
  expect(moment("2001-11-21T12:00:05Z")).toMatch(/2001.*:05$/);
});

it("counts the service's days by UTC, wherever the viewer is", () => {
  expect(day("2026-11-24")).toMatch(/Tue.*24|24.*Tue/);
});

describe("times in messages", () => {
  it("are found by their form", () => {
    expect(pieces("free at about 2026-11-25 22:15 UTC, or later")).toEqual([
      { text: "free at about ", at: null },
      { text: "2026-11-25 22:15 UTC", at: "2026-11-25T22:15Z" },
      { text: ", or later", at: null },
    ]);
    expect(pieces("2026-11-25 22:15:09 UTC")).toEqual([{ text: "2026-11-25 22:15:09 UTC", at: "2026-11-25T22:15:09Z" }]);
  });

  it("are words where there is no such time", () => {
    for (const text of ["", "at 22:15 UTC", "at 2026-11-25 22:15", "at 2026-19-45 22:15 UTC"]) {
      expect(pieces(text)).toEqual(text === "" ? [] : [{ text, at: null }]);
    }
  });
});
