import { expect, test } from "vitest";

import { differences, diffLines, isEnvironment, isSetting } from "./differences";

test("only fields that differ are told, with who has which value", () => {
  const specs = [
    { name: "a", command: ["train.py", "--lr", "0.1"], env: { SEED: "1" }, resources: { gpus: 1 } },
    { name: "b", command: ["train.py", "--lr", "0.2"], env: { SEED: "1", EXTRA: "x" }, resources: { gpus: 1 } },
    { name: "c", command: ["train.py", "--lr", "0.1"], env: { SEED: "1" }, resources: { gpus: 1, nodes: null } },
  ];
  expect(differences(specs)).toEqual([
    { path: "command", values: [{ text: "train.py --lr 0.1", of: [0, 2] }, { text: "train.py --lr 0.2", of: [1] }] },
    { path: "env.EXTRA", values: [{ text: "", of: [0, 2] }, { text: "x", of: [1] }] },
  ]);
  expect(differences(specs.slice(0, 2), ["command", "env.EXTRA"])).toEqual([
    { path: "name", values: [{ text: "a", of: [0] }, { text: "b", of: [1] }] },
  ]);
  expect(isEnvironment("env.EXTRA")).toBe(true);
  expect(isEnvironment("environmental")).toBe(false);
});

test("variables are told as settings and as environment, other fields as one of them", () => {
  const specs = [
    { env: { SEED: "1", LR: "0.1" }, python: "3.11", secrets: ["WANDB"], time_limit: 60 },
    { env: { SEED: "2", LR: "0.1" }, python: "3.12", secrets: ["WANDB", "HF"], time_limit: 90 },
  ];
  const paths = differences(specs).map(({ path }) => path);
  expect(paths.filter(isSetting)).toEqual(["env.SEED", "time_limit"]);
  expect(paths.filter(isEnvironment)).toEqual(["env.SEED", "python", "secrets"]);
});

test("changed lines come with a few around them", () => {
  const before = Array.from({ length: 20 }, (_, n) => `line ${n}`);
  const after = before.with(10, "another").toSpliced(15, 0, "new");
  const lines = diffLines(before.join("\n"), after.join("\n"), 1);
  expect(lines?.map(({ kind, text }) => `${kind} ${text}`)).toEqual([
    "skipped ", "same line 9", "removed line 10", "added another", "same line 11", "skipped ", "same line 14", "added new",
    "same line 15", "skipped ",
  ]);
  expect(lines?.find(({ kind }) => kind === "added")).toMatchObject({ before: null, after: 11 });
  expect(diffLines("a\n", "a\n")).toBeNull();
});
