import { expect, it } from "vitest";
import openapi from "../../../../openapi.json";

import type { Reason, Why } from "../api/types";
import { KINDS, reasonWords, STATES, summaryWords } from "./reasons";

const ALICE = { jobs: [{ number: 3, user: "alice" }], more: 0 };
const said = (code: string, params: Reason["params"] = {}) => ({ code, message: "as the service says", jobs: [], params });
const words = (code: string, params?: Reason["params"]) => reasonWords(said(code, params), "zh-CN");
const why = (first: Reason, position: number | null) => ({ summary: "whole", reasons: [first], position }) as unknown as Why;

it("leaves English to the service", () => {
  expect(reasonWords(said("held"), "en")).toBe("as the service says");
  expect(summaryWords(why(said("held"), 2), 7, "en")).toBe("whole");
});

it("takes the service's words where a kind is unknown, or lacks a parameter", () => {
  expect(words("made-up")).toBe("as the service says");
  expect(words("never-fits", { lack: "made-up", node: "vm" })).toBe("as the service says");
  expect(words("gpus")).toBe("as the service says");
  expect(words("toString")).toBe("as the service says");
});

it("tells what a node lacks, who has it and what comes of that", () => {
  const params = { node: "vm", free: 1, needed: 2, unit: "gpu", type: "", memory: "", preempted: false, pinned: false, unusable: [], ...ALICE };
  expect(words("gpus", params)).toBe("node vm has 1 GPUs free and the job needs 2; the rest is held by job 3 (alice)");
  expect(words("gpus", { ...params, type: "H100", memory: "40GiB", preempted: true, more: 2, unit: "gpu", unusable: [{ index: 1, said: "hot" }] })).toBe(
    "node vm has 1 GPUs (H100, at least 40GiB) free and the job needs 2; the rest is held by job 3 (alice) and 2 more; " +
    "others will be preempted for it; GPU 1 cannot be used (hot)",
  );
});

it("tells of quotas, dependencies, preemptions and reservations", () => {
  expect(words("quota", { kind: "user-gpus", whose: "bob", limit: 4, needed: 2, ...ALICE }))
    .toBe("the quota of user bob is 4 devices at once; used by job 3 (alice); the job needs 2");
  expect(words("dependency", { jobs: [{ number: 3, user: "alice", state: "running" }], more: 0, when: "success", need: "all" }))
    .toBe("waits for the success of job 3 (alice, runs)");
  expect(words("files-arriving", { node: "vm", attempt: 2, number: 3, wait: "1h" }))
    .toBe("waits for files of attempt 2 of job 3 from node vm, no longer than 1h after its end");
  expect(words("making-room", { stopping: ALICE, starting_over: ALICE, saving: { jobs: [], more: 0 }, due: "" }))
    .toBe("waits for a preemption; job 3 (alice) is being stopped; job 3 (alice) goes back to start over");
  const trainer = words("unstoppable", { recipes: true, scripts: false, restartable: true, ...ALICE });
  expect(trainer).toContain("`restartable: true`");
  expect(words("unstoppable", { recipes: true, scripts: false, restartable: false, ...ALICE })).not.toContain("restartable");
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

it("knows every kind of reason that the service has", () => {
  const known = openapi.components.schemas.Reason.properties.code["x-extensible-enum"];
  expect(known.filter((code) => !(code in KINDS) && !(code in STATES))).toEqual([]);
});

it("tells why no node could ever hold a job, and whose jobs a node runs not", () => {
  expect(words("never-fits", { node: "vm", lack: "mig", found: 0, needed: 2 }))
    .toContain("has 0 whole GPUs, the job needs 2: of MIG instances");
  expect(words("never-fits", { node: "vm", lack: "slots", found: 1, needed: 2, unit: "gpu" }))
    .toBe("node vm has 1 GPUs, the job needs 2");
  expect(words("never-fits", { node: "vm", lack: "slots", found: 0, needed: 2, unit: "gpu", type: "H100", memory: "" }))
    .toBe("node vm has 0 GPUs (H100), the job needs 2");
  expect(words("unusable", { node: "vm", unit: "cpu", unusable: [{ index: 3, said: "hot" }] }))
    .toBe("node vm: CPU slot 3 cannot be used (hot)");
  expect(words("outdated", { node: "vm", unknown: "warm_start" })).toContain("a worker that knows warm_start: node vm");
  expect(words("account", { node: "vm", refusal: "deactivated", user: "bob", account: "" })).toContain("bob is deactivated");
  expect(words("account", { node: "vm" })).toBe("node vm runs no jobs of this user");
});

it("tells of secrets, pauses and preemptors", () => {
  expect(words("secret", { names: ["A", "B"], project: "vision" }))
    .toBe("the job's owner and project vision have no secret A, B: add it with `yard secrets set A`, `yard secrets set B`");
  expect(words("queue-paused", { user: "ada", since: "noon", said: "a fan" }))
    .toBe("the queue is paused by ada since noon: a fan");
  expect(words("giving-way", { ...ALICE, said: "it" })).toBe("saves its work, to be preempted for job 3 (alice)");
  expect(words("giving-way", { jobs: [], more: 0, said: "reservation demo" })).toContain("for reservation demo");
  const demo = { jobs: [], more: 0, said: "as the service says", preemptor_params: { name: "demo", maintenance: false } };
  expect(words("giving-way", demo)).toContain("for reservation demo");
});
