import { i18n } from "@lingui/core";
import { expect, it } from "vitest";

import { bytes, fixed, hours, metric, tick } from "./format";
import { gauges } from "./telemetry";

// English as read in Germany: words of ours, numbers as written there.
i18n.loadAndActivate({ locale: "en", locales: "en-DE", messages: {} });

it("writes numbers with the decimal sign of the viewer's locale", () => {
  expect([bytes(1536), metric(0.681234), metric(0.00003), metric(41200.5)]).toEqual(["1,5 KiB", "0,6812", "3,00e-5", "41201"]);
  expect([tick(0.25), tick(1234.5), tick(2.5e7)]).toEqual(["0,25", "1235", "2,5e+7"]);
  expect([hours(0.004), hours(0.25), hours(7.04), fixed(-0.5, 2)]).toEqual(["<0,01", "0,25", "7,0", "-0,50"]);
});

it("writes what is measured in the same way", () => {
  const [gauge] = gauges([{ name: "gpu.0.temperature", rank: null, points: [[1, 0, 61.26]] } as never]);
  expect(gauge?.words(61.26)).toBe("61,3 °C");
});
