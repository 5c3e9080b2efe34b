import { expect, test } from "vitest";

import type { Attention } from "../api/types";
import type { ToldJob } from "./listed";
import { badge, headlineOf, newsOf, notificationsOf, withNewest } from "./notifications";

const at = (minute: number) => `2026-11-26T08:0${minute}:00Z`;
const job = (number: number, state: ToldJob["state"], more: Partial<ToldJob> = {}) => ({
  id: `job-${number}`, number, name: "resnet", state, version: 1, started_at: null, ended_at: null, error: null, ...more,
}) as ToldJob;
const hung = { kind: "hung", job: 2, message: "makes no step any more", since: at(4) } as Attention;

test("each job has its newest notification, the last first", () => {
  const jobs = [
    job(1, "succeeded", { started_at: at(0), ended_at: at(2) }),
    job(2, "running", { started_at: at(1) }),
    job(3, "failed", { ended_at: at(3), error: { cause: "exit", message: "KeyError", params: {} } }),
    job(4, "running", { started_at: at(5) }),
  ];
  expect(notificationsOf(jobs, [hung]).map(({ number, kind, message }) => [number, kind, message])).toEqual([
    [4, "started", null], [2, "hangs", "makes no step any more"], [3, "failed", "KeyError"], [1, "done", null],
  ]);
});

test("jobs that wait, were cancelled or are trials tell nothing", () => {
  const jobs = [
    job(1, "queued", { started_at: at(0) }), job(2, "cancelled", { ended_at: at(1) }),
    job(3, "running", { started_at: at(1), group: "sweep-1" }), job(4, "starting"),
  ];
  expect(notificationsOf(jobs, [])).toEqual([]);
});

test("an event brings a job, or a newer version of it, and no older one", () => {
  const known = [job(2, "running", { version: 3 }), job(1, "running")];
  expect(withNewest(known, job(3, "queued")).map(({ number }) => number)).toEqual([3, 2, 1]);
  expect(withNewest(known, job(1, "failed", { version: 2 })).map(({ state }) => state)).toEqual(["failed", "running"]);
  expect(withNewest(known, job(2, "queued", { version: 2 }))).toBe(known);
});

test("news are what was not there before, and nothing of what is read first", () => {
  const now = notificationsOf([job(1, "running", { started_at: at(1) }), job(2, "running", { started_at: at(2) })], []);
  expect(newsOf(null, now)).toEqual([]);
  expect(newsOf(new Set([now[1]?.id ?? ""]), now).map(headlineOf)).toEqual(["2 resnet has started"]);
  expect(newsOf(new Set(now.map(({ id }) => id)), now)).toEqual([]);
});

test("a badge has one digit at most", () => {
  expect([1, 9, 10].map(badge)).toEqual(["1", "9", "9+"]);
});

test("of many jobs the newest are remembered, and no trials", () => {
  const known = Array.from({ length: 200 }, (_, at) => job(at, "running"));
  const more = withNewest(known, job(500, "queued"));
  expect([more.length, more[0]?.number, more.at(-1)?.number]).toEqual([200, 500, 198]);
  expect(withNewest(known, job(501, "queued", { group: "sweep-1" }))).toBe(known);
});
