import { expect, it } from "vitest";

import type { Series } from "../api/types";
import { highlights } from "./highlights";

const series = (name: string, values: (number | "nan")[], rank = 0): Series => (
  { name, rank, points: values.map((value, step) => [step, 100 + step, value]) }
);

it("puts held-out accuracies and losses first, with their best values", () => {
  const shown = highlights([
    series("throughput", [900]), series("lr", [0.1]), series("train/loss", [3, 1, 2]), series("val/loss", [2, "nan"]),
    series("val/accuracy", [0.2, 0.9, 0.8]), series("val/accuracy", [0.1], 1),
  ]);
  expect(shown.map(({ name, latest, best }) => [name, latest, best?.word, best?.value])).toEqual([
    ["val/accuracy", 0.8, "highest", 0.9], ["val/loss", "nan", "lowest", 2], ["train/loss", 2, "lowest", 1],
  ]);
  expect(shown[0]?.values).toEqual([0.2, 0.9, 0.8]);
});

it("shows the first metrics of a script that names none of these, without a best", () => {
  expect(highlights([series("reward", [1, 5]), series("lr", [0.1])]).map(({ name, best }) => [name, best])).toEqual(
    [["reward", null], ["lr", null]],
  );
});

it("leaves the progress that was read from the log to the track", () => {
  expect(highlights([series("progress", [50]), series("progress/phase-2", [9])])).toEqual([]);
});

it("looks for the best within buckets too", () => {
  const buckets = {
    first_step: [0], last_step: [9], first_time: [1], last_time: [2], count: [10], min: [0.25], mean: [1], max: [4],
  };
  expect(highlights([{ ...series("loss", [2]), buckets }])[0]?.best).toEqual({ word: "lowest", value: 0.25 });
});

it("shows the value that came after one that is no number, where it is in a bucket", () => {
  const buckets = {
    first_step: [1], last_step: [9], first_time: [1], last_time: [2], count: [9], min: [0.25], mean: [0.5], max: [4],
  };
  expect(highlights([{ ...series("loss", ["nan"]), buckets }])[0]?.latest).toBe(0.5);
});
