import { expect, it } from "vitest";

import { isAwaited, reasonsToKeep, repeated } from "./checkpoints";

const saved = (step: number, second: number, attempt = 1) => (
  { step, attempt, created_at: new Date(second * 1000).toISOString() }
);

it("says why a checkpoint stays", () => {
  expect(reasonsToKeep({ step: 20, best: true, pinned: true }, 20)).toEqual(["newest", "best", "pinned"]);
  expect(reasonsToKeep({ step: 10, best: false, pinned: false }, 20)).toEqual([]);
});

it("tells the steps that are made again, and how long they take at the pace of the newest attempt", () => {
  const all = [saved(0, 0), saved(100, 10_000), saved(100, 50_000, 2), saved(200, 50_200, 2)];
  expect(repeated(saved(150, 0), all, 300)).toEqual({ steps: 150, seconds: 300 });
  expect(repeated(saved(300, 0), all, 300)).toEqual({ steps: 0, seconds: 0 });
  expect(repeated(saved(10, 0), [saved(10, 0)], 30)).toEqual({ steps: 20, seconds: null });
  expect(repeated(saved(10, 0), all, null)).toBeNull();
});

it("awaits a checkpoint that was asked for until it has come or failed, or its attempt is over", () => {
  const asked = { before: ["ckpt-1"], attempt: 1, unsaved: null };
  const job = { attempt: 1, unsaved: null };
  expect(isAwaited(undefined, job)).toBe(false);
  expect(isAwaited(asked, job)).toBe(true);
  expect(isAwaited(asked, job, [{ id: "ckpt-1" }])).toBe(true);
  expect(isAwaited(asked, job, [])).toBe(true);
  expect(isAwaited(asked, job, [{ id: "ckpt-1" }, { id: "ckpt-2" }])).toBe(false);
  expect(isAwaited(asked, { ...job, unsaved: "disk full" }, [{ id: "ckpt-1" }])).toBe(false);
  expect(isAwaited(asked, { ...job, attempt: 2 }, [{ id: "ckpt-1" }])).toBe(false);
});
