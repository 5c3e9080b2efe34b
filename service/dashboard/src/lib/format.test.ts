import { describe, expect, it } from "vitest";

import { bytes, hours, metric, percent, plural } from "./format";

describe("bytes", () => {
  it("chooses the unit", () => {
    expect(bytes(0)).toBe("0 B");
    expect(bytes(1023)).toBe("1023 B");
    expect(bytes(1536)).toBe("1.5 KiB");
    expect(bytes(80 * 2 ** 30)).toBe("80.0 GiB");
    expect(bytes(5000 * 2 ** 40)).toBe("5000 TiB");
  });
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

it("tells GPU-hours and shares by the digits that count", () => {
  expect([hours(0), hours(0.004), hours(0.25), hours(7.04), hours(140.6)]).toEqual(["0", "<0.01", "0.25", "7.0", "141"]);
  expect([percent(0), percent(0.004), percent(0.5)]).toEqual(["0 %", "<1 %", "50 %"]);
});
