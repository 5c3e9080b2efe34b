import { expect, it } from "vitest";

import { byFacet, byState, lineAt, lineCount } from "./sections";

const sections = byState({ running: 2, queued: 1, failed: 3, succeeded: 1 }, { user: "ada" }, "newest");
const lines = (closed: string[] = []) => {
  const set = new Set(closed);
  return Array.from({ length: lineCount(sections, set) + 1 }, (_, index) => {
    const line = lineAt(sections, set, index);
    return line === null ? null : line.kind === "head" ? line.section.key : line.place;
  });
};

it("runs, waits, has ended", () => {
  expect(sections.map(({ key, count, query }) => [key, count, query.order])).toEqual([
    ["running", 2, "newest"], ["waiting", 1, "queue"], ["ended", 4, "newest"],
  ]);
  expect(byState({ running: 2, failed: 3 }, { state: ["failed"] }, "oldest").map(({ key }) => key)).toEqual(["ended"]);
});

it("has a line for each head and job", () => {
  expect(lines()).toEqual(["running", 0, 1, "waiting", 0, "ended", 0, 1, 2, 3, null]);
  expect(lines(["running", "ended"])).toEqual(["running", "waiting", 0, "ended", null]);
});

it("reads the jobs of a sweep, and of none", () => {
  const facets = [{ value: "7", title: "rates", states: { queued: 2 } }, { value: "", title: "", states: { failed: 1 } }];
  expect(byFacet(facets, "sweep", {}, "newest").map(({ title, count, query }) => [title, count, query])).toEqual([
    ["7 rates", 2, { group: "7", order: "newest" }], ["No sweep", 1, { trials: false, order: "newest" }],
  ]);
});
