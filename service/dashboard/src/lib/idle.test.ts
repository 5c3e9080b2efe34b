import { expect, it } from "vitest";

import openapi from "../../../../openapi.json";
import { IDLE, idleWords } from "./idle";

const words = (code: string, params = {}, locale = "zh-CN") => idleWords({ code, message: "as the service says", params }, locale);
const job = { jobs: [{ number: 12, user: "ann" }], more: 0 };
const needs = { ...job, needed: 2, units: ["gpu"], nodes: 1 };
const until = "2026-11-25 18:00 UTC";

it("knows every reason that the service has", () => {
  const known = openapi.components.schemas.IdleDevices.properties.code["x-extensible-enum"];
  expect(known.filter((code) => !(code in IDLE))).toEqual([]);
});

it("tells for whom, until when, and who cannot be stopped", () => {
  const stuck = { pinned: true, scripts: true, recipes: false, jobs: [{ number: 7, user: "bob" }], more: 0 };
  expect(words("kept", { ...needs, until, unstoppable: [stuck] })).toBe(
    "kept for job 12 (ann), which needs 2 GPUs and can start at about 2026-11-25 18:00 UTC; " +
    "job 7 (bob) cannot be stopped for others, as `preemptible: false` is in the spec: " +
    "without that line a job can be stopped once it has a checkpoint",
  );
  const few = words("too-few", { ...needs, nodes: 2, unstoppable: [{ ...stuck, pinned: false }] });
  expect(few).toContain("too few for job 12 (ann), which needs 2 GPUs on each of 2 nodes; there is no verified");
  expect(words("too-few", { ...needs, units: ["cpu", "gpu"], until })).toContain("needs 2 devices; enough is expected");
  expect(words("kept", needs)).toBe("kept for job 12 (ann), which needs 2 GPUs");
});

it("tells of paused queues, closed nodes and reservations", () => {
  expect(words("queue-paused", { user: "ann", since: until, said: "" })).toBe(`the queue is paused by ann since ${until}`);
  expect(words("queue-paused", { user: "ann", since: until, said: "fans" })).toBe(`the queue is paused by ann since ${until}: fans`);
  expect(words("closed", { closed: "unreachable" })).toBe("its node is not heard");
  expect(words("closed", { closed: "draining", until })).toBe(`its node takes no new jobs before its maintenance ends at ${until}`);
  const demo = { name: "demo", start: "noon", until };
  expect(words("reserved", { ...demo, maintenance: true })).toBe(`out of use for maintenance from noon to ${until} (demo)`);
  expect(words("reserved", { ...demo, maintenance: false })).toBe(`reserved from noon to ${until} (demo)`);
  expect(["starting", "preempting", "next"].every((code) => words(code, job).startsWith("job 12 (ann) "))).toBe(true);
});

it("leaves to the service English, what is unknown, and what lacks a detail", () => {
  const plain = ["quota", "ineligible", "unsuitable", "nobody"];
  const bare = Object.keys(IDLE).filter((code) => !plain.includes(code));
  expect([...bare, "made-up", "toString"].filter((code) => words(code) !== "as the service says")).toEqual([]);
  expect(plain.filter((code) => words(code) === "as the service says" || words(code, {}, "en") !== "as the service says")).toEqual([]);
});
