import { expect, it } from "vitest";

import openapi from "../../../../openapi.json";
import type { Finding } from "../api/types";
import { FINDINGS, findingWords, outageWords } from "./findings";
import { LIMITS, limitWords } from "./limits";

const found = (code: string, params: Finding["params"] = {}) => ({ code, message: "as the node says", params });
const words = (code: string, params: Finding["params"] = {}, locale = "zh-CN") => (
  findingWords(found(code, params), "as the node says", locale)
);
const PROCESS = { pid: 7, name: "python", user: "eve", started: "2026-11-25 18:00 UTC" };
const WHO = "process 7 (python) of eve, started 2026-11-25 18:00 UTC,";

it("knows every finding that nodes have", () => {
  const known = openapi.components.schemas.Finding.properties.code["x-extensible-enum"];
  expect(known.filter((code) => !(code in FINDINGS || code in LIMITS))).toEqual([]);
});

it("tells what is broken, and what follows a quarantine", () => {
  const params = { xid: 79, at: "2026-11-25 18:00:03 UTC", errors: 3, return: "yard nodes --return box:0" };
  const fault = "Xid 79 (it has fallen off the bus) at 2026-11-25 18:00:03 UTC, uncorrectable memory errors (ECC) since its last reset: 3";
  const mend = `${fault}: reset the GPU, or reboot the node, then \`yard nodes --return box:0\` (for an administrator)`;
  expect(words("broken", params)).toBe(`in quarantine: ${mend}`);
  expect(outageWords(found("broken", params), "as the node says", "zh-CN")).toBe(mend);
  expect(outageWords(found("failing", { jobs: 3, resume: "yard nodes --resume box" }), "", "zh-CN")).toContain("the last 3 jobs");
  expect(outageWords(null, "a drain", "zh-CN")).toBe("a drain");
});

it("names processes from outside of the queue", () => {
  const gpu = { ...PROCESS, uuid: "GPU-1" };
  expect(words("awaited", { ...PROCESS, held: "2.0 GiB", others: 0 })).toContain(`${WHO} holds about 2.0 GiB of it`);
  expect(words("awaited", { ...PROCESS, held: "2.0 GiB", others: 2 })).toContain(`${WHO} and 2 more hold about 2.0 GiB of it`);
  expect(words("excluded", PROCESS)).toBe(`${WHO} is not of the queue: end it`);
  expect(words("on-free-gpu", { ...gpu, held: "" })).toBe(`${WHO} uses GPU GPU-1, which the queue has given to nobody`);
  expect(words("on-free-gpu", { ...gpu, held: "1.0 GiB" })).toContain("uses 1.0 GiB of GPU GPU-1");
  expect(words("on-held-gpu", { ...gpu, held: "", holders: ["a", "b"] })).toContain("uses GPU GPU-1, which the queue has given to a, b");
  expect(words("on-held-gpu", { ...gpu, held: "1.0 GiB", holders: ["a"] })).toContain("uses 1.0 GiB of GPU GPU-1, which the queue has given to a");
});

it("leaves to the node English, what is unknown, and what lacks a detail", () => {
  const bare = Object.keys(FINDINGS).filter((code) => code !== "broken");
  expect([...bare, "made-up", "toString"].filter((code) => words(code) !== "as the node says")).toEqual([]);
  expect(words("broken", { errors: 1 }, "en")).toBe("as the node says");
  expect(findingWords(null, "as the node says", "zh-CN")).toBe("as the node says");
});

it("says why there are no limits", () => {
  expect(limitWords(found("cgroups-off"), "as the node says", "zh-CN")).toContain("TORCHYARD_CGROUPS=0");
  const left = [limitWords(found("cgroups-off"), "own", "en"), limitWords(found("toString"), "own", "zh-CN"), limitWords(null, "own", "zh-CN")];
  expect(left).toEqual(["own", "own", "own"]);
});
