import { expect, it } from "vitest";

import type { Waste } from "../api/types";
import { WASTES, wasteWords } from "./wastes";

const waste: Waste = { kind: "idle", user: "ann", gpu_hours: 3.25, count: 3, jobs: [7, 9], message: "as the service says" };

it("tells what was wasted, and the mend", () => {
  const all = (Object.keys(WASTES) as Waste["kind"][]).map((kind) => wasteWords({ ...waste, kind }, "zh-CN"));
  expect(all.filter((words) => /^3 jobs of ann .* 3\.3 GPU-hours .*\(7, 9, …\): .*`/u.test(words))).toHaveLength(3);
  expect(wasteWords({ ...waste, count: 2 }, "zh-CN")).toContain("(7, 9):");
});

it("leaves English to the service", () => {
  expect(wasteWords(waste, "en")).toBe("as the service says");
});
