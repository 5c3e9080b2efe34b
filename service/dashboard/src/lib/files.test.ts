import { expect, it } from "vitest";

import type { Output } from "../api/types";
import { type FileNode, fileTrees } from "./files";

function output(name: string, more: Partial<Output> = {}): Output {
  return {
    name, size: 10, sha256: "", root: "code", node_rank: 0, node: "kiln", attempt: 1, state: "stored", place: null,
    wanted: false, baseline: null, mode: 0o644, ...more,
  };
}

function names(node: FileNode): unknown[] {
  return node.children.map((child) => child.file === null ? [child.name, names(child)] : child.name);
}

it("makes folders of paths, sorted, and joins those that hold one folder alone", () => {
  const files = ["runs/today/10/events", "runs/today/9/events", "log.txt", "deep/er/x", "deep/er/a/y"].map((n) => output(n));
  const [tree] = fileTrees(files);
  expect(tree && names(tree.top)).toEqual([
    ["deep/er", [["a", ["y"]], "x"]],
    ["runs/today", [["9", ["events"]], ["10", ["events"]]]],
    "log.txt",
  ]);
});

it("sums up what is there, without what the job has removed", () => {
  const [tree] = fileTrees([output("a/x"), output("a/y", { size: 5 }), output("a/z", { state: "deleted" })]);
  expect(tree?.top.size).toBe(15);
  expect(tree?.top.children[0]?.count).toBe(2);
});

it("keeps roots apart, the output folder first, and nodes only where there are several", () => {
  const one = fileTrees([output("a", { root: "job" }), output("a"), output("a", { root: "output" })]);
  expect(one.map((tree) => [tree.root, tree.node])).toEqual([["output", null], ["code", null], ["job", null]]);
  const two = fileTrees([output("a", { node_rank: 1, node: "oven" }), output("a")]);
  expect(two.map((tree) => tree.node)).toEqual(["kiln", "oven"]);
});
