import { expect, it } from "vitest";

import type { Series } from "../api/types";
import { groupSeries, sectionsOf } from "./chartGroups";

const named = (...names: string[]): Series[] => names.map((name) => ({ name, rank: 0, points: [] }));

it("puts what was measured of training and validation on one chart, and the ranks of a metric", () => {
  const groups = groupSeries(named("train/loss", "val/loss", "lr", "memory_peak/rank0", "memory_peak/rank1", "optim/lr"));
  expect(groups.map((group) => [group.name, group.series.map((one) => one.name)])).toEqual([
    ["loss", ["train/loss", "val/loss"]],
    ["lr", ["lr"]],
    ["memory_peak", ["memory_peak/rank0", "memory_peak/rank1"]],
    ["optim/lr", ["optim/lr"]],
  ]);
});

it("names a chart of one metric as its user did", () => {
  expect(groupSeries(named("train/loss", "memory_peak/rank0")).map(({ name }) => name)).toEqual(
    ["train/loss", "memory_peak/rank0"],
  );
});

it("begins with losses and accuracies, goes on by prefix, and folds what the machine did", () => {
  const groups = groupSeries(named("throughput", "lr", "optim/10/norm", "aux_loss", "val/accuracy", "val/loss", "optim/2/norm"));
  const sections = sectionsOf(groups, ["lr"]);
  expect(sections.map(({ title, groups: shown, folded }) => [title, shown.map(({ name }) => name), folded])).toEqual([
    ["Pinned", ["lr"], false],
    ["Losses and accuracies", ["val/loss", "val/accuracy", "aux_loss"], false],
    ["optim", ["optim/2/norm", "optim/10/norm"], false],
    ["System", ["throughput"], true],
  ]);
});

it("folds nothing where there is nothing else", () => {
  expect(sectionsOf(groupSeries(named("throughput")), [])[0]?.folded).toBe(false);
});
