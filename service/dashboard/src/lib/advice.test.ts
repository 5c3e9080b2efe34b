import { expect, it } from "vitest";

import type { Alternative } from "../api/types";
import { adviceWords, changeWords } from "./advice";

const gpus = (count: number) => `${count} GPUs`;
const words = (change: Alternative["change"], nodes: string[] = [], locale = "zh-CN") => (
  changeWords({ change, nodes, message: "", starts: "now", command: "" }, gpus, locale)
);

it("puts a change of the spec into words", () => {
  expect(words({ priority: "high" }, ["a", "b"])).toBe("with priority high, on node a, b");
  expect(words({ "resources.gpus": 2 })).toBe("with only 2 GPUs");
  expect(words({ "resources.nodes": 1, "resources.gpus": 4 })).toBe("on one node with 4 GPUs");
  expect(words({ "resources.nodes": 2, "resources.gpus": 4 })).toBe("on 2 nodes with 4 GPUs each");
  expect(words({ preemptible: null })).not.toBe(words({ preemptible: true }));
});

it("leaves to the service what it does not know, and English", () => {
  expect(words({ "made.up": 1 })).toBeNull();
  expect(words({ priority: "high" }, [], "en")).toBeNull();
});

it("says where a job of several nodes runs best", () => {
  const network = { between: ["a", "b"], pairs: 1, rate: "1 GB/s", when: "noon", size: "100 MB", wait: "100 ms" };
  const common = { node: "a", needed: 4, ...network };
  expect(adviceWords({ ...common, advice: "one-node", slow: false })).toContain("node a alone could hold all of it");
  expect(adviceWords({ ...common, advice: "network", slow: true })).toContain("That is slow");
  expect(adviceWords({ ...common, advice: "made-up", slow: true })).toBeNull();
});
