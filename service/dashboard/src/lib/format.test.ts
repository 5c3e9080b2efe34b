import { describe, expect, it } from "vitest";

import { age, bytes, duration, forecast, hour, hours, metric, percent, plural, secondsBetween } from "./format";

describe("bytes", () => {
  it("chooses the unit", () => {
    expect(bytes(0)).toBe("0 B");
    expect(bytes(1023)).toBe("1023 B");
    expect(bytes(1536)).toBe("1.5 KiB");
    expect(bytes(80 * 2 ** 30)).toBe("80.0 GiB");
    expect(bytes(5000 * 2 ** 40)).toBe("5000 TiB");
  });
});

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

it("tells ages in one unit", () => {
  expect([age(40), age(600), age(7300), age(500_000)]).toEqual(["40s", "10m", "2h", "5d"]);
});

it("counts to now while there is no end", () => {
  const now = Date.parse("2026-01-01T00:01:00Z");
  expect(secondsBetween("2026-01-01T00:00:00Z", null, now)).toBe(60);
  expect(secondsBetween("2026-01-01T00:00:00Z", "2026-01-01T00:00:05Z", now)).toBe(5);
});

it("writes metrics with four digits, and what is no number as it is", () => {
  expect(metric(0.681234)).toBe("0.6812");
  expect(metric(41200)).toBe("41200");
  expect(metric(0.00003)).toBe("3.00e-5");
  expect(metric(0)).toBe("0");
  expect(metric("nan")).toBe("nan");
});

it("counts in words", () => {
  expect([plural(1, "GPU"), plural(2, "GPU")]).toEqual(["1 GPU", "2 GPUs"]);
});

describe("times to come", () => {
  const now = new Date(2026, 10, 21, 12, 0).getTime();
  const at = (day: number, hours: number, minutes: number) => new Date(2026, 10, day, hours, minutes).toISOString();

  it("are told by the hour, and by the day where it is another one", () => {
    expect(hour(at(21, 14, 20), now)).toBe("14:20");
    expect(hour(at(22, 9, 5), now)).toBe("Sun 09:05");
    expect(hour(at(30, 9, 5), now)).toMatch(/30.* 09:05$/);
  });

  it("are told with how sure they are", () => {
    expect(forecast(at(21, 14, 20), at(21, 15, 5), now)).toBe("about 14:20, by 15:05 in nine cases of ten");
    expect(forecast(at(21, 14, 20), at(21, 14, 20), now)).toBe("about 14:20");
    expect(forecast(at(21, 14, 20), null, now)).toBe("about 14:20");
  });
});

it("tells GPU-hours and shares by the digits that count", () => {
  expect([hours(0), hours(0.004), hours(0.25), hours(7.04), hours(140.6)]).toEqual(["0", "<0.01", "0.25", "7.0", "141"]);
  expect([percent(0), percent(0.004), percent(0.5)]).toEqual(["0 %", "<1 %", "50 %"]);
});
