import { expect, it } from "vitest";

import type { Job } from "../api/types";
import { differingFields } from "./runFields";

const run = (command: string[], more: object = {}, parameters: object | null = null) =>
  ({ spec: { name: "x", command, ...more }, parameters }) as unknown as Job;

it("takes settings out of commands", () => {
  expect(differingFields([
    run(["python", "train.py", "--lr", "0.1", "--epochs=3", "optimizer.name=sgd", "--amp", "-v"]),
    run(["python", "train.py", "--lr", "1e-3", "--epochs=3", "optimizer.name=adam", "-v"]),
  ])).toEqual([{ "--lr": 0.1, "optimizer.name": "sgd", "--amp": "true" }, { "--lr": 0.001, "optimizer.name": "adam" }]);
});

it("has other fields of specs, and the rest of commands, where they differ", () => {
  expect(differingFields([
    run(["a.py", "x", "-1"], { env: { SEED: "1", MODE: "a" }, resources: { gpus: 1 }, tags: ["p"] }),
    run(["b.py", "x", "-1"], { env: { SEED: "2", MODE: "a" }, resources: { gpus: 2 } }),
    run(["b.py", "x", "-1"], { env: { SEED: "3", MODE: "a" }, resources: { gpus: 2 } }),
  ])).toEqual([
    { command: "a.py x -1", "env.SEED": 1, "resources.gpus": 1, tags: "p" },
    { command: "b.py x -1", "env.SEED": 2, "resources.gpus": 2 },
    { command: "b.py x -1", "env.SEED": 3, "resources.gpus": 2 },
  ]);
});

it("tells a parameter once, by its own name", () => {
  expect(differingFields([run(["--lr", "0.1"], {}, { lr: 0.1, seed: 1 }), run(["--lr", "0.2"], {}, { lr: 0.2, seed: 1 })]))
    .toEqual([{ lr: 0.1 }, { lr: 0.2 }]);
});

it("leaves out names that each run has for itself", () => {
  const runs = Array.from({ length: 13 }, (_, at) => run(["a.py", "--out", `run-${at}`, "--seed", String(at)]));
  expect(differingFields(runs)[2]).toEqual({ "--seed": 2 });
  expect(differingFields(runs.slice(0, 2))[1]).toEqual({ "--out": "run-1", "--seed": 1 });
  expect(differingFields([])).toEqual([]);
});
