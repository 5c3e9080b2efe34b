import { expect, it } from "vitest";

import { inUnit, listed, optional, setting, sizeSetting } from "./setting";

it("writes spans as settings have them", () => {
  expect([604_800, 90, 3_600, 0, "4h"].map(setting)).toEqual(["7d", "90s", "1h", "0s", "4h"]);
});

it("writes a number with its unit", () => {
  expect([inUnit(7_200, "seconds"), inUnit(2 ** 30, "bytes")]).toEqual(["2h", "1GiB"]);
});

it("reads what is typed", () => {
  expect(listed(" mira, jonas ,")).toEqual(["mira", "jonas"]);
  expect([optional(" "), optional("4.5")]).toEqual([null, 4.5]);
});

it("writes sizes so that they can be read again", () => {
  expect([2 ** 41, 1500 * 2 ** 20, 1000, 0, "2TiB"].map(sizeSetting)).toEqual(["2TiB", "1500MiB", "1000", "0", "2TiB"]);
});
