import { expect, test } from "vitest";

import { ran } from "./ran";

const NOW = Date.parse("2026-11-27T12:00:00Z");
const started_at = "2026-11-27T09:00:00Z";

test("a job that waits again has run no longer meanwhile", () => {
  expect(ran({ started_at, ran_s: 600, running_since: null }, NOW)).toBe("10m 00s");
  expect(ran({ started_at, ran_s: 600, running_since: "2026-11-27T11:59:00Z" }, NOW)).toBe("11m 00s");
});

test("a job that never started has not run, and a node's clock that is ahead takes nothing away", () => {
  expect(ran({ started_at: null, ran_s: 0, running_since: null }, NOW)).toBeNull();
  expect(ran({ started_at, ran_s: 60, running_since: "2026-11-27T12:00:05Z" }, NOW)).toBe("1m 00s");
});
