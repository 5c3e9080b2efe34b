import { expect, it } from "vitest";

import type { Job } from "../api/types";
import { readKey } from "./axes";
import { coordinatesOf } from "./coordinates";
import { endsOf } from "./ends";

const run = (id: string, lr: string, loss: number) =>
  ({ id, spec: { command: ["--lr", lr] }, parameters: null, latest: { loss, "val/acc": 0.5 } }) as unknown as Job;
const jobs = [run("a", "0.1", 3), run("b", "0.2", 2)];
const ends = endsOf([
  { job: "a", name: "loss", min: 1, max: 9 }, { job: "a", name: "val/acc", min: 0.1, max: 0.9 },
  { job: "b", name: "loss", min: 2, max: 8 },
]);

it("has axes of what runs differ by, and of final and best values", () => {
  const { trials, keys, axes } = coordinatesOf(jobs, ["loss", "val/acc", "lr"], ends, undefined);
  const metrics = ["metric:loss", "metric:loss best", "metric:val/acc", "metric:val/acc best"] as const;
  expect(keys).toEqual(["parameter:--lr", ...metrics, "metric:lr", "metric:lr best"]);
  expect(axes.map(({ key }) => key)).toEqual(["parameter:--lr", ...metrics]);
  expect(trials.map((each) => readKey(each, "metric:loss best"))).toEqual([1, 2]);
  expect(trials.map((each) => readKey(each, "metric:val/acc best"))).toEqual([0.9, undefined]);
});

it("shows the axes that are chosen, in their own order", () => {
  const { axes } = coordinatesOf(jobs, ["loss"], ends, ["metric:loss best", "parameter:--lr", "metric:gone"]);
  expect(axes.map(({ key }) => key)).toEqual(["parameter:--lr", "metric:loss best"]);
});
