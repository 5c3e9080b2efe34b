import { expect, it } from "vitest";

import openapi from "../../../../openapi.json";
import { eventLabel, eventWords, LABELS, WORDS } from "./events";

const words = (kind: string, data: Record<string, unknown> = {}, locale = "zh-CN") => (
  eventWords({ kind, message: "as the service says", data }, locale)
);

it("knows every kind of event that the service has", () => {
  const known = openapi.components.schemas.Event.properties.kind["x-extensible-enum"];
  expect(known.filter((kind) => LABELS[kind] === undefined)).toEqual([]);
  expect(known.filter((kind) => WORDS[kind] === undefined)).toEqual([]);
});

it("leaves English to the service", () => {
  expect(words("held", {}, "en")).toBe("as the service says");
  expect([eventLabel("stop-requested", "en"), eventLabel("stop-requested", "zh-CN")]).toEqual(["stop-requested", "stop requested"]);
});

it("takes the service's words for a kind that is unknown, and for an older event without details", () => {
  const bare = ["made-up", "assigned", "claimed", "prepared", "running", "checkpoint", "awaiting", "preempting", "put-back",
    "requeued", "stop-requested", "reachable", "succeeded", "cancelled", "shared", "discarded", "goes-on", "submitted",
    "voided", "checkpoint-failed", "inexact", "stacks", "hangs", "idle", "awaiting-abandoned", "preemption-abandoned",
    "unreachable", "part-ended", "failed"];
  expect(bare.filter((kind) => words(kind) !== "as the service says")).toEqual([]);
});

it("takes the service's words where a detail is missing that another tells of", () => {
  expect(words("requeued", { again: "retry", try: 1, of: 3 })).toBe("as the service says");
  expect(words("awaiting-abandoned", { numbers: [1], allowed_s: 300, spared_s: 600 })).toBe("as the service says");
});

it("tells of the way to the devices", () => {
  const places = [{ node: "a", unit: "gpu", indexes: "0, 1" }, { node: "b", unit: "cpu", indexes: "2" }];
  expect(words("assigned", { places, share: "" })).toBe("assigned to GPU 0, 1 of node a, CPU slot 2 of node b");
  expect(words("assigned", { places: places.slice(0, 1), share: "8GiB" })).toContain("with 8GiB of each");
  expect(words("claimed", { node: "a" })).toBe("node a prepares code and environment");
  expect(words("running", { step: 40, carried: false })).toBe("the first instruction ran; resumes from step 40");
  expect(words("checkpoint", { step: 40, done: "stored", size: "2MiB" })).toBe("checkpoint of step 40 stored (2MiB)");
});

it("tells of preemptions and stops", () => {
  const kept = { stop: "preempt", preemptor: "job 7 (bob)", saved: 40, at_step: " after a checkpoint at step 40", resumes: 40 };
  expect(words("requeued", kept)).toBe("preempted for job 7 (bob) after a checkpoint at step 40; resumes from step 40");
  expect(words("requeued", { stop: "drain", preemptor: "", saved: null, at_step: "", resumes: null }))
    .toBe("stopped because its node is draining");
  expect(words("requeued", { ...kept, saved: null, at_step: "; nothing was saved" })).toBe("as the service says");
  expect(words("stop-requested", { reason: "cancel", detail: "cancelled" })).toBe("it was cancelled");
  expect(words("stop-requested", { reason: "early", detail: "0.2 below" })).toBe("other trials of its sweep do better (0.2 below)");
  expect(words("cancelled", { started: false })).toBe("cancelled before it started");
  expect(words("awaiting", { numbers: [3, 4] })).toBe("to be preempted for it: job 3, job 4");
  expect(words("changed", { priority: "high", tags: ["a"] })).toBe("priority is now high, tags is now [\"a\"]");
});

it("names for whom a job gives its devices away by what the name is made of", () => {
  const [job, kept] = [{ number: 7, user: "bob", priority: "urgent" }, { kept: true }];
  const of = (params: object) => ({ preemptor: "as it says", preemptor_params: params });
  expect(words("put-back", of({ ...job, ...kept })))
    .toBe("put back for job 7 (bob), urgent, for which its devices are kept: it starts from the beginning in its turn; no retry is spent");
  expect(words("preempting", { ...of({ name: "demo", maintenance: false }), checkpoint: true }))
    .toBe("is to be preempted for reservation demo: asked to write a checkpoint first");
  expect(words("preemption-abandoned", { ...of({ name: "fans", maintenance: true }), leaves: false, why: "gone" }))
    .toBe("keeps its devices: maintenance fans no longer waits");
  expect(words("requeued", { ...of({}), stop: "preempt", saved: 4, at_step: "", resumes: null }))
    .toBe("preempted for as it says after a checkpoint at step 4");
  const asked = { reason: "preempt", detail: "as the service says", ...of(job) };
  expect(words("stop-requested", { ...asked, step: 40 }))
    .toBe("it was preempted for job 7 (bob), urgent: its checkpoint of step 40 is verified");
  expect(words("stop-requested", { ...asked, step: null })).toContain("it may start over and has no checkpoint");
  expect(words("stop-requested", { ...asked, put_back: true })).toBe("it was put back for job 7 (bob), urgent");
  expect(words("stop-requested", { reason: "preempt", detail: "in English" })).toBe("it was preempted (in English)");
});

it("keeps what the service says after a submission", () => {
  const submitted = (message: string) => eventWords({ kind: "submitted", message, data: {} }, "zh-CN");
  expect(submitted("submitted; take `nodes` 1")).toBe("submitted; take `nodes` 1");
  expect(submitted("something else")).toBe("something else");
  const notes = [{ code: "new-project", message: "as the service says", params: { project: "vision" } }];
  expect(words("submitted", { notes })).toContain("submitted; ");
});

it("tells of attempts that nobody claimed, and of nodes", () => {
  expect(words("voided", { node: "a", lacks: "claim", limit_s: 30 })).toBe("node a has not claimed it within 30 s");
  expect(words("voided", { node: "a", lacks: "preparation", limit_s: 30 })).toBe("node a is not prepared within 30 s");
  expect(words("voided", { node: "a" })).toContain("node a fell silent");
  expect(words("unreachable", { node: "a", elsewhere: true })).toContain("from another machine");
  expect(words("unreachable", { node: "a", elsewhere: false })).toContain("node a is silent");
  expect(words("part-ended", { node: "a", failed: false, first: false })).toBe("node a has ended its part");
  expect(words("part-ended", { node: "a", failed: true, first: true })).toContain("the other nodes are told");
});

it("tells of runs that hang, idle, or cannot save", () => {
  const alone = { more: 0, place: "a.py:1", error: null, collective: null, doing: null };
  const groups = [{ ...alone, ranks: [0, 1], more: 4, collective: "barrier" }, { ...alone, ranks: [2], doing: "data loading" }];
  expect(words("stacks", { groups })).toBe("rank 0, 1 and 4 more: waiting in barrier (a.py:1); rank 2: in data loading (a.py:1)");
  expect(words("stacks", { groups: [{ ...alone, ranks: [3], error: "no py-spy" }] })).toBe("rank 3 cannot be read: no py-spy");
  expect(words("hangs", { silent: "7m", allowed: "5m" })).toBe("hangs: no step for 7m, where it may take 5m");
  expect(words("idle", { lasts: "30m", limit: "1h", own: true })).toContain("its `idle_limit` of 1h");
  expect(words("idle", { lasts: "30m", limit: "1h", own: false })).toContain("this installation's idle limit of 1h");
  expect(words("checkpoint-failed", { step: 0, text: "disk full" })).toBe("no checkpoint, the training goes on: disk full");
  expect(words("checkpoint-failed", { step: 7, text: "disk full" })).toContain("no checkpoint of step 7");
  expect(words("inexact", { text: "a sampler", resumed: true })).toBe("is not resumed exactly: a sampler");
});

it("tells of preemptions that came to nothing", () => {
  const kept = { preemptor: "job 9 (ana)", leaves: false, why: null, allowed_s: null };
  expect(words("preemption-abandoned", kept)).toBe("keeps its devices: another job cannot be preempted for job 9 (ana)");
  expect(words("preemption-abandoned", { ...kept, allowed_s: 300 })).toContain("no checkpoint was verified within 300 s");
  expect(words("preemption-abandoned", { ...kept, leaves: true, why: "gone" })).toBe("is preempted for nobody: job 9 (ana) no longer waits");
  const awaited = { numbers: [1, 2], late: [2], why: null, allowed_s: 300, spared_s: 600 };
  expect(words("awaiting-abandoned", awaited)).toContain("for job 2 brought no verified checkpoint within 300 s");
  expect(words("awaiting-abandoned", { ...awaited, why: "moved" })).toContain("would not start there any more");
});

it("tells of failures and of what comes after them", () => {
  const error = { cause: "exit", message: "", exit_code: 1, params: { told: "exit" } };
  expect(words("failed", { error, unspent: true }))
    .toBe("exited with code 1; it would fail the same way again, so `max_retries` is left alone");
  expect(words("failed", { error, saved: 40, at_step: " after" })).toBe("exited with code 1; stopped after a checkpoint at step 40");
  expect(words("failed", { error, saved: null, at_step: "; nothing was saved" })).toBe("as the service says");
  expect(words("failed", { error, held: "3GiB", asked: "9GiB" })).toContain("it held 3GiB at most of the 9GiB");
  const again = (data: object) => words("requeued", { error, pause_s: 0, resumes: null, ...data });
  expect(again({ again: "retry", try: 1, of: 3, resumes: 40 })).toBe("exited with code 1; retry 1 of 3; resumes from step 40");
  expect(again({ again: "fault", try: 2, of: 3, pause_s: 30 })).toContain("try 2 of 3 after 30 s");
  expect(again({ again: "port", restarts: true })).toContain("no retry is spent; starts from the beginning");
  expect(["idle", "unstarted", "spoiled"].map((one) => again({ again: one }).includes("exited"))).toEqual([true, true, true]);
  expect(again({ again: "made-up" })).toBe("as the service says");
});
