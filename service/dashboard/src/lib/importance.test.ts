import { expect, it } from "vitest";

import type { Job } from "../api/types";
import { FEWEST, importance, ranks } from "./importance";

const trials = (count: number, of: (n: number) => [Record<string, unknown>, unknown]) => (
  Array.from({ length: count }, (_, n) => {
    const [parameters, acc] = of(n);
    return { parameters, latest: acc === undefined ? {} : { acc } };
  }) as unknown as Job[]
);

it("ranks from 1, equal values at the mean of theirs", () => {
  expect(ranks([30, 10, 20, 10])).toEqual([4, 1.5, 3, 1.5]);
});

it("says nothing of few trials", () => {
  expect(importance(trials(FEWEST - 1, (n) => [{ lr: n }, n]), ["lr"], "acc")).toBeNull();
  expect(importance(trials(FEWEST + 5, (n) => [{ lr: n }, n < FEWEST - 1 ? n : "nan"]), ["lr"], "acc")).toBeNull();
});

it("puts the parameter that decides first, and calls what does nothing chance", () => {
  const found = importance(trials(40, (n) => [{ seed: (n * 7) % 40, lr: n }, 40 - n]), ["seed", "lr"], "acc");
  expect(found?.map(({ name, chance }) => [name, chance])).toEqual([["lr", false], ["seed", true]]);
  expect(found?.[0]?.share).toBeGreaterThan(0.9);
  expect(found?.[0]?.correlation).toBeCloseTo(-1);
});

it("sees an optimum in the middle, which no correlation does", () => {
  const [one] = importance(trials(41, (n) => [{ lr: n }, -((n - 20) ** 2)]), ["lr"], "acc") ?? [];
  expect(one?.share).toBeGreaterThan(0.7);
  expect(one?.chance).toBe(false);
  expect(one?.correlation).toBeCloseTo(0);
});

it("has words as they are, without a correlation, and the same value everywhere as nothing", () => {
  const found = importance(trials(20, (n) => [{ opt: n % 2 ? "sgd" : "adam", fixed: 3 }, n % 2 ? n : 100 + n]), ["fixed", "opt"], "acc");
  expect(found?.[0]).toMatchObject({ name: "opt", chance: false, correlation: null });
  expect(found?.[1]).toEqual({ name: "fixed", share: 0, chance: true, correlation: null });
});

it("is eta squared of Kruskal and Wallis's H", () => {
  // Two groups of five, apart without overlap: H = 6.818, so (6.818 - 2 + 1) / (10 - 2).
  const [one] = importance(trials(10, (n) => [{ opt: n < 5 ? "a" : "b" }, n]), ["opt"], "acc") ?? [];
  expect(one?.share).toBeCloseTo((6.81818 - 1) / 8, 4);
});
