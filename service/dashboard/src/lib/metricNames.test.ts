import { expect, it } from "vitest";

import { kindOf, unitOf } from "./metricNames";

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
