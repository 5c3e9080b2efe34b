import { expect, it } from "vitest";

import { parseChartSettings, toggled } from "./chartSettings";

it("reads what it has written, and leaves out what is as usual", () => {
  const settings = {
    axis: "wall", scale: "log", smooth: 0.9, zoom: [10, 20.5], hide: ["loss"], pin: ["lr"], full: "loss",
    y: { loss: [0, 1] }, ranks: "band",
  };
  expect(parseChartSettings(JSON.parse(JSON.stringify(settings)) as Record<string, unknown>)).toEqual(settings);
  expect(parseChartSettings({})).toEqual({});
});

it("takes nothing that it cannot understand", () => {
  const raw = {
    axis: "steps", scale: "cubic", smooth: 1, zoom: [2, 1], hide: "loss", pin: [], full: 3, y: { loss: ["a", 2] }, ranks: 1,
  };
  expect(parseChartSettings(raw)).toEqual({});
});

it("takes a word out or puts it in", () => {
  expect([toggled(undefined, "a"), toggled(["a", "b"], "a"), toggled(["b"], "a")]).toEqual([["a"], ["b"], ["b", "a"]]);
});
