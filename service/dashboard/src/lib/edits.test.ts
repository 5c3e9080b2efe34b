import { expect, test } from "vitest";

import { changedFields, editsBetween, textsOf } from "./edits";

const job = { name: "resnet", priority: "normal", tags: ["a", "b"], spec: { time_limit: 7_200 } } as const;
const before = textsOf({ ...job, tags: [...job.tags] });

test("a form begins with the job's fields", () => {
  expect(before).toEqual({ name: "resnet", priority: "normal", tags: "a, b", timeLimit: "2h" });
  expect(textsOf({ ...job, tags: [], spec: { time_limit: null } })).toMatchObject({ tags: "", timeLimit: "" });
});

test("only what was typed anew is sent", () => {
  expect(editsBetween(before, before)).toEqual({});
  expect(editsBetween(before, { ...before, name: " vit ", tags: "b,  c," })).toEqual({ name: "vit", tags: ["b", "c"] });
  expect(editsBetween(before, { ...before, priority: "high", timeLimit: "4h" })).toEqual({
    priority: "high", time_limit: "4h",
  });
});

test("an empty time limit takes the limit away", () => {
  expect(editsBetween(before, { ...before, timeLimit: " " })).toEqual({ time_limit: null });
});

test("what others have changed is told by field", () => {
  const opened: Parameters<typeof changedFields>[0] = { ...job, tags: [...job.tags], state: "queued" };
  expect(changedFields(opened, { ...opened, tags: ["a", "b"] })).toEqual([]);
  expect(changedFields(opened, { ...opened, state: "running", priority: "high" })).toEqual(["state", "priority"]);
  expect(changedFields(opened, { ...opened, name: "vit", tags: [], spec: {} })).toEqual(["name", "tags", "timeLimit"]);
});
