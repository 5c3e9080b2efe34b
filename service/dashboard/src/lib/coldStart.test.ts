import { expect, it } from "vitest";

import openapi from "../../../../openapi.json";
import { COLD, coldWords, packageNames } from "./coldStart";

const words = (cold_code: string | null, cold_params = {}, locale = "zh-CN") => (
  coldWords({ cold_reason: "as the node says", cold_code, cold_params }, locale)
);

it("knows every reason that nodes have", () => {
  const known = openapi.components.schemas.StartTiming.properties.cold_code["x-extensible-enum"];
  expect(known.filter((code) => !(code in COLD))).toEqual([]);
});

it("names what the reason is about", () => {
  expect(words("off")).toContain("TORCHYARD_WARM_START");
  expect(words("own-module", { said: "torch" })).toContain("has a module torch of its own");
});

it("leaves to the node English, what is unknown, and what lacks a detail", () => {
  expect([words("off", {}, "en"), words(null), words("made-up"), words("toString"), words("unfit")])
    .toEqual(Array(5).fill("as the node says"));
  expect(coldWords({ cold_reason: null, cold_code: null, cold_params: {} }, "zh-CN")).toBeNull();
});

it("names the first packages of many", () => {
  expect(packageNames(["a", "b"])).toBe("a, b");
  expect(packageNames(["a", "b", "c", "d", "e", "f", "g"])).toBe("a, b, c, d, e and 2 more");
});
