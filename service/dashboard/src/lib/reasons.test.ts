import { expect, it } from "vitest";

import type { Reason, Why } from "../api/types";
import { reasonWords, summaryWords } from "./reasons";

const ALICE = { jobs: [{ number: 3, user: "alice" }], more: 0 };
const said = (code: string, params: Reason["params"] = {}) => ({ code, message: "as the service says", jobs: [], params });
const words = (code: string, params?: Reason["params"]) => reasonWords(said(code, params), "zh-CN");
const why = (first: Reason, position: number | null) => ({ summary: "whole", reasons: [first], position }) as unknown as Why;

it("leaves English to the service", () => {
  expect(reasonWords(said("held"), "en")).toBe("as the service says");
  expect(summaryWords(why(said("held"), 2), 7, "en")).toBe("whole");
});

it("takes the service's words where a kind is unknown, or lacks a parameter", () => {
  expect(words("never-fits")).toBe("as the service says");
  expect(words("gpus")).toBe("as the service says");
  expect(words("toString")).toBe("as the service says");
});

it("tells what a node lacks, who has it and what comes of that", () => {
  const params = { node: "vm", free: 1, needed: 2, unit: "gpu", type: "", memory: "", preempted: false, pinned: false, unusable: "", ...ALICE };
  expect(words("gpus", params)).toBe("node vm has 1 GPUs free and the job needs 2; the rest is held by job 3 (alice)");
  expect(words("gpus", { ...params, type: "H100", memory: "40GiB", preempted: true, more: 2, unusable: "GPU 1 is hot" })).toBe(
    "node vm has 1 GPUs (H100, at least 40GiB) free and the job needs 2; the rest is held by job 3 (alice) and 2 more; " +
    "others are preempted for it; GPU 1 is hot",
  );
});

it("tells of quotas, dependencies, preemptions and reservations", () => {
  expect(words("quota", { kind: "user-gpus", whose: "bob", limit: 4, needed: 2, ...ALICE }))
    .toBe("the quota of user bob is 4 devices at once; used by job 3 (alice); the job needs 2");
  expect(words("dependency", { jobs: [{ number: 3, user: "alice", state: "running" }], more: 0, when: "success", need: "all" }))
    .toBe("waits for the success of job 3 (alice, runs)");
  expect(words("making-room", { stopping: ALICE, saving: { jobs: [], more: 0 }, due: "" }))
    .toBe("waits for a preemption; job 3 (alice) is being stopped");
  expect(words("reserved", { node: "vm", start: "a", end: "b", name: "demo", maintenance: true, part: null }))
    .toBe("node vm is out of use for maintenance from a to b (demo)");
  expect(words("behind", { node: "vm", kept: true, until: "c", ...ALICE })).toContain("they can start at about c");
});

it("puts the strongest reason, or the state, into one sentence", () => {
  expect(summaryWords(why(said("held"), 2), 7, "zh-CN")).toBe("Job 7 waits at place 2: is held: release it to let it start.");
  expect(summaryWords(why(said("running", { node: "vm", since: "noon" }), null), 7, "zh-CN"))
    .toBe("Job 7 has been running on node vm since noon.");
  expect(summaryWords(why(said("oom"), null), 7, "zh-CN")).toBe("whole");
});
