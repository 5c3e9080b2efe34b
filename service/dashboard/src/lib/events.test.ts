import { expect, it } from "vitest";

import openapi from "../../../../openapi.json";
import { eventLabel, eventWords, LABELS, SAID, WORDS } from "./events";

const words = (kind: string, data: Record<string, unknown> = {}, locale = "zh-CN") => (
  eventWords({ kind, message: "as the service says", data }, locale)
);

it("knows every kind of event that the service has", () => {
  const known = openapi.components.schemas.Event.properties.kind["x-extensible-enum"];
  expect(known.filter((kind) => LABELS[kind] === undefined)).toEqual([]);
  expect(known.filter((kind) => SAID.has(kind) === (WORDS[kind] !== undefined))).toEqual([]);
});

it("leaves English to the service", () => {
  expect(words("held", {}, "en")).toBe("as the service says");
  expect([eventLabel("stop-requested", "en"), eventLabel("stop-requested", "zh-CN")]).toEqual(["stop-requested", "stop requested"]);
});

it("takes the service's words for a kind that is unknown, and for an older event without details", () => {
  const bare = ["made-up", "assigned", "claimed", "prepared", "running", "checkpoint", "awaiting", "preempting", "put-back",
    "requeued", "stop-requested", "reachable", "succeeded", "cancelled", "shared", "discarded", "goes-on"];
  expect(bare.filter((kind) => words(kind) !== "as the service says")).toEqual([]);
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
