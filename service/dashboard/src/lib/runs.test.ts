import { expect, test } from "vitest";

import type { Job } from "../api/types";
import { colorOf, idsAt, metricsOfRuns, parseRefs, placesOf, toCsv, toGrid, toRuns } from "./runs";

const curve = (job: string, number: number[], mean: number[], special: number[] = []) => ({
  job, name: "loss", number, count: number.map(() => 1), min: mean.map((one) => one - 1), mean,
  max: mean.map((one) => one + 1), special, last: null,
});

test("curves of several runs have one axis", () => {
  const curves = [curve("a", [0, 2], [1, 3]), curve("b", [1, 3], [5, 7], [2])];
  const grid = toGrid({ width: 4, rough: false, curves }, ["b", "none", "a"], true);
  expect(grid.x).toEqual([1.5, 5.5, 9.5, 13.5]);
  expect(grid.mean).toEqual([
    [undefined, 5, null, 7], [undefined, undefined, undefined, undefined], [1, undefined, 3, undefined],
  ]);
  expect(grid.low[2]).toEqual([0, undefined, 2, undefined]);
  expect(toGrid({ width: 1, rough: false, curves }, ["a"], true).x).toEqual([0, 1, 2, 3]);
  expect(toGrid({ width: 1, rough: false, curves: [] }, ["a"], true).x).toEqual([]);
});

test("losses come first, then what most runs have", () => {
  const jobs = [{ latest: { lr: 1, loss: 2 } }, { latest: { lr: 1, "val/acc": 2, z: 1 } }] as unknown as Job[];
  expect(metricsOfRuns(jobs)).toEqual(["loss", "val/acc", "lr", "z"]);
});

test("references are read once each", () => {
  expect(parseRefs("3, 1,,3,job-x")).toEqual(["3", "1", "job-x"]);
});

test("every run has a colour of its own", () => {
  expect(new Set(Array.from({ length: 100 }, (_, index) => colorOf(index))).size).toBe(100);
});

test("a table is quoted, and holds no formula", () => {
  expect(toCsv([["a", 1, null], ["b,\"c\"", -2, "=1+1"]])).toBe("a,1,\r\n\"b,\"\"c\"\"\",-2,'=1+1\r\n");
});

test("what is known of a run by its place stays its own when one before it is left out", () => {
  const jobs = ["a", "b", "c"].map((id) => ({ id }) as Job);
  const unticked = idsAt(new Set([1]), toRuns(jobs));
  expect([...placesOf(unticked, toRuns(jobs))]).toEqual([1]);
  expect([...placesOf(unticked, toRuns(jobs.slice(1)))]).toEqual([0]);
  expect([...placesOf(unticked, toRuns(jobs.slice(2)))]).toEqual([]);
});
