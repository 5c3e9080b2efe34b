import { expect, it } from "vitest";

import type { Series } from "../api/types";
import { gauges } from "./telemetry";

const named = (...names: string[]): Series[] => names.map((name) => ({ name, rank: 0, points: [] }));

it("puts the devices of a measure on one chart", () => {
  const shown = gauges(named("cpu.percent", "gpu.0.power", "gpu.0.temperature", "gpu.0.utilization", "gpu.1.utilization"));
  expect(shown.map(({ title, series }) => [title, series.map(({ name }) => name)])).toEqual([
    ["GPU utilisation", ["GPU 0", "GPU 1"]],
    ["GPU temperature", ["GPU 0"]],
    ["GPU power", ["GPU 0"]],
    ["Processor", ["all processes"]],
  ]);
  expect(shown.map(({ words }) => words(61.6))).toEqual(["62 %", "61.6 °C", "62 W", "62 %"]);
});

it("tells the nodes of a job that runs on several", () => {
  const [memory] = gauges(named("kiln/gpu.0.memory_used", "oven/gpu.0.memory_used"));
  expect(memory?.series.map(({ name }) => name)).toEqual(["kiln, GPU 0", "oven, GPU 0"]);
});
