import { i18n } from "@lingui/core";
import { expect, it, onTestFinished } from "vitest";

import openapi from "../../../../openapi.json";
import { LAUNCHER_REASONS, NOTES, notesWords, noteWords } from "./notes";

const words = (code: string, params = {}, locale = "zh-CN") => noteWords({ code, message: "as the service says", params }, locale);

it("knows every note that the service has", () => {
  const known = openapi.components.schemas.SubmissionNote.properties.code["x-extensible-enum"];
  expect(known.filter((code) => !(code in NOTES))).toEqual([]);
});

it("leaves to the service English, what is unknown, and what lacks a detail", () => {
  const bare = ["made-up", "toString", "launcher", "node-gpus", "quota-gpus", "other-batch", "gpu-memory", "new-project",
    "stoppable", "put-back", "never-put-back"];
  expect(bare.filter((code) => words(code) !== "as the service says")).toEqual([]);
  expect(words("no-nodes", {}, "en")).toBe("as the service says");
});

it("tells what is advised", () => {
  expect(words("one-node", { advice: "one-node", node: "a", needed: 2 })).toContain("node a alone could hold all of it");
  expect(words("gpu-memory", { jobs: 3, held: "9 GiB", asked: "40 GiB", option: "--set resources.gpu_share=12GiB" }))
    .toBe("the last 3 jobs like it held 9 GiB of a GPU at most, and this one asks for 40 GiB: `--set resources.gpu_share=12GiB` would do");
  expect(words("never-put-back", { by: "policy", setting: "restarts: 0" })).toContain("the policy has restarts: 0");
  expect(words("never-put-back", { by: "list", project: "vision" })).toContain("`no_restarts`");
  expect(words("never-put-back", { by: "project", project: "vision" })).toContain("project vision wants it");
  expect(words("put-back", { after: "1m", times: 2, restartable: "auto" })).toContain("2 times at most");
});

it("knows every reason for a launcher that the service has", () => {
  const { parameters } = openapi.paths["/api/v1/jobs"].post;
  const known = parameters.flatMap(({ schema }) => ("x-extensible-enum" in schema ? schema["x-extensible-enum"] : []));
  expect(known.toSorted()).toEqual(Object.keys(LAUNCHER_REASONS).toSorted());
});

it("tells why a launcher was chosen, by its code, and as an older client said it", async () => {
  const [before, { messages }] = [i18n.locale, await import("../locales/zh-CN")];
  onTestFinished(() => i18n.activate(before));
  i18n.loadAndActivate({ locale: "zh-CN", messages });
  const because = (reason: object) => words("launcher", { launcher: "python", said: "its own words", ...reason });
  const told = Object.keys(LAUNCHER_REASONS).map((why) => because({ why, subject: "t.py:2" }));
  expect(told.filter((each) => each.includes("its own words") || !/，原因：.*\p{Script=Han}/u.test(each))).toEqual([]);
  expect(told.filter((each) => each.includes("t.py:2"))).toHaveLength(3);
  expect([{}, { why: "", subject: "" }, { why: "toString", subject: "" }, { why: "starts-itself" }].map(because))
    .toEqual(Array(4).fill(because({})));
  expect(because({})).toContain("its own words");
});

it("joins notes", () => {
  const note = { code: "made-up", message: "a", params: {} };
  expect(notesWords([note, { ...note, code: "new-project", params: { project: "b" } }], "zh-CN")).toBe("a; project b is new");
});
