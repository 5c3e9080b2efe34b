import { expect, it } from "vitest";

import { byFacet, byState, goesOn, identityOf, lineAt, lineCount, MOST, rowKeys, withFollowing } from "./sections";

const sections = byState({ states: { running: 2, queued: 1, failed: 3, succeeded: 1 } }, { user: "ada" }, "newest");
const lines = (closed: string[] = []) => {
  const set = new Set(closed);
  return Array.from({ length: lineCount(sections, set) + 1 }, (_, index) => {
    const line = lineAt(sections, set, index);
    return line === null ? null : line.kind === "job" ? line.place : line.section.key;
  });
};

it("runs, waits, has ended", () => {
  expect(sections.map(({ key, count, query }) => [key, count, query.order])).toEqual([
    ["running", 2, "newest"], ["waiting", 1, "queue"], ["ended", 4, "newest"],
  ]);
  expect(byState({ states: { running: 2, failed: 3 } }, { state: ["failed"] }, "oldest").map(({ key }) => key)).toEqual(["ended"]);
});

it("has a line for each head and job", () => {
  expect(lines()).toEqual(["running", 0, 1, "waiting", 0, "ended", 0, 1, 2, 3, null]);
  expect(lines(["running", "ended"])).toEqual(["running", "waiting", 0, "ended", null]);
});

it("leads on where there are more than can be scrolled through", () => {
  const many = byState({ states: { failed: 7, succeeded: MOST }, more: ["running"] }, {}, "newest");
  expect(many.map(({ key, count, more }) => [key, count, more])).toEqual([["running", 0, true], ["ended", MOST, true]]);
  expect(lineCount(many, new Set())).toBe(MOST + 4);
  const at = (index: number, closed: string[] = []) => lineAt(many, new Set(closed), index)?.kind;
  expect([at(0), at(1), at(2), at(MOST + 2), at(MOST + 3), at(MOST + 4)]).toEqual(
    ["head", "more", "head", "job", "more", undefined],
  );
  expect(at(1, ["running"])).toBe("head");
});

it("reads the jobs of a sweep, and of none", () => {
  const facets = [
    { value: "7", title: "rates", states: { queued: 2 }, more: false },
    { value: "", title: "", states: { failed: 1 }, more: false },
  ];
  expect(byFacet(facets, "sweep", {}, "newest").map(({ title, count, query }) => [title, count, query])).toEqual([
    ["7 rates", 2, { group: "7", order: "newest" }], ["No sweep", 1, { trials: false, order: "newest" }],
  ]);
});

it("goes on behind a full part, under its head", () => {
  const [full] = byState({ states: { failed: MOST }, more: ["failed"] }, { user: "ada" }, "newest");
  if (full === undefined) throw new Error("no part");
  const end = { last: "500", counts: { states: { failed: 499, running: 3 } } };
  const parts = withFollowing([full], new Map([[identityOf(full.query), end]]));
  expect(parts.map(({ key, count, more, query: { before } }) => [key, count, more, before])).toEqual([
    ["ended", MOST, false, undefined], ["ended +1", 499, false, 500],
  ]);
  expect(lineCount(parts, new Set())).toBe(1 + MOST + 499);
  expect(lineCount(parts, new Set(["ended"]))).toBe(1);
  const at = (index: number) => lineAt(parts, new Set(), index);
  expect([at(MOST), at(MOST + 1)].map((line) => line?.kind === "job" && [line.section.key, line.place])).toEqual(
    [["ended", MOST - 1], ["ended +1", 0]],
  );
  expect(at(MOST + 500)).toBeNull();
});

it("goes on among newer jobs where the oldest come first, and not by itself in other orders or without an end", () => {
  const part = (order: "oldest" | "name") => byState({ states: { failed: MOST }, more: ["failed"] }, {}, order)[0];
  const end = { last: "500", counts: { states: { failed: MOST }, more: ["failed"] } };
  const follow = (order: "oldest" | "name", times: number) => {
    const ends = new Map<string, typeof end>();
    let parts = [part(order)].filter((one) => one !== undefined);
    for (let time = 0; time < times; time++) {
      const last = parts.at(-1);
      if (last !== undefined) ends.set(identityOf(last.query), { ...end, last: String(time) });
      parts = withFollowing(parts.slice(0, 1).map((one) => ({ ...one, more: true })), ends);
    }
    return parts;
  };
  expect(follow("oldest", 1)[1]?.query.after).toBe(0);
  expect(follow("name", 1)).toHaveLength(1);
  const many = follow("oldest", 40);
  expect(many).toHaveLength(25);
  expect(many.map(goesOn)).not.toContain(true);
});

it("knows rows by their jobs, wherever these are", () => {
  const keys = (...ids: string[]) => {
    const jobs = new Map(ids.map((id, place) => [`ended ${place}`, { id }]));
    return rowKeys([0, 1, 2, 3, 4].map((index) => lineAt(sections, new Set(["running", "waiting"]), index + 2)), jobs);
  };
  const before = keys("b", "a");
  const after = keys("new", "b", "a", "a");
  expect(after.slice(2, 4)).toEqual(before.slice(1, 3));
  // One that two pages have for a moment, and ones that are not read.
  for (const all of [before, after]) expect(new Set(all).size).toBe(all.length);
});
