import { expect, it } from "vitest";

import { auditQuery, auditTable } from "./audit";

const ALL = { user: "", action: " ", result: "all", days: null } as const;
const NOW = Date.parse("2026-11-25T12:00:30Z");

it("asks only for what is given", () => {
  expect(auditQuery(ALL, NOW)).toEqual({});
  expect(auditQuery({ user: " ada", action: "job", result: "refused", days: 1 }, NOW)).toEqual({
    user: "ada", action: "job", result: "refused", since: "2026-11-24T12:00:00.000Z",
  });
});

it("names the table of the same entries", () => {
  expect(auditTable({ ...ALL, user: "(unknown)" }, NOW)).toBe("/api/v1/audit?user=%28unknown%29&format=csv");
});
