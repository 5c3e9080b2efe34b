import { expect, it } from "vitest";

import type { NodeDevice } from "../api/types";
import { headline } from "./headline";
import { nearness } from "./nearness";
import { sparkPath } from "./spark";
import { gauges, lastValues } from "./telemetry";

it("tells validation before training, and accuracy before the learning rate", () => {
  const latest = { lr: 0.1, "train/loss": 1, "val/accuracy": 0.9, "val/loss": 1.2 };
  expect(headline(latest).map(([name]) => name)).toEqual(["val/accuracy", "val/loss"]);
  expect(headline({ lr: 0.1, loss: 2 }).map(([name]) => name)).toEqual(["loss", "lr"]);
});

it("draws a small path inside its box", () => {
  expect(sparkPath([0, 50, 200], 100, 100, 23)).toBe("M0.0 21.5 L50.0 11.5 L100.0 1.5");
});

it("finds the charts of telemetry that there are data for", () => {
  const series = ["gpu.0.utilization", "gpu.1.utilization", "cpu.percent", "gpu.0.power"].map((name) => (
    { name, rank: 0, points: [[0, 0, 7]] as [number, number, number][] }
  ));
  expect(gauges(series).map(({ title, series: shown }) => [title, shown.length])).toEqual(
    [["GPU utilisation", 2], ["GPU power", 1], ["Processor", 1]],
  );
  expect(lastValues(series, "cpu.percent", 5)).toEqual([7]);
  expect(lastValues(series, "nothing", 5)).toEqual([]);
});

it("says which GPUs are near", () => {
  const device = (index: number, links: Record<string, string> | null) =>
    ({ uuid: `GPU-${index}`, index, topology: links && { numa: 0, links } }) as unknown as NodeDevice;
  const all = [device(0, { "GPU-1": "nvlink", "GPU-2": "sys" }), device(1, { "GPU-0": "sys" }), device(2, null)];
  expect(all.map((one) => nearness(one, all))).toEqual([["NUMA 0", "NVLink to 1"], ["NUMA 0"], []]);
});
