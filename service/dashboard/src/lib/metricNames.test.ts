import { expect, it } from "vitest";

import { kindOf, unitOf, valueOf, wordsOf } from "./metricNames";

it.each([
  ["train/loss", "loss"], ["val_loss", "loss"], ["val/accuracy", "accuracy"], ["top5", "accuracy"], ["lr", "other"],
  ["throughput/device", "system"], ["memory_peak/rank0", "system"], ["data_wait", "system"], ["gpu/0/power", "system"],
])("takes %s for %s", (name, kind) => {
  expect(kindOf(name)).toBe(kind);
});

it.each([
  ["memory_peak/rank3", "bytes"], ["step_time", "seconds"], ["eval/duration", "seconds"], ["tokens_per_s", null],
  ["data_wait", "share"], ["loss", null], ["params", null],
])("measures %s in %s", (name, unit) => {
  expect(unitOf(name)).toBe(unit);
});

it("writes values in their units", () => {
  expect([wordsOf("memory_peak/rank0")?.(2 ** 31), wordsOf("step_time")?.(0.25), wordsOf("data_wait")?.(0.5)]).toEqual(
    ["2.0 GiB", "0.2500 s", "50 %"],
  );
  expect(wordsOf("loss")).toBeNull();
});

it("writes a value in its metric's unit, and what is no number as it is", () => {
  expect(valueOf("memory_peak/rank0", 840_000_000)).toBe("801 MiB");
  expect(valueOf("val/loss", 0.25)).toBe("0.2500");
  expect(valueOf("val/loss", "NaN")).toBe("NaN");
});
