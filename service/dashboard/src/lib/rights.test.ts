import { expect, it } from "vitest";

import { mayChange, maySubmit, type Viewer } from "./rights";

const viewer = (name: string, ...scopes: string[]): Viewer => ({ user: { name }, scopes });

it("lets owners and administrators change a job", () => {
  expect(mayChange(viewer("ana", "read", "submit"), "ana")).toBe(true);
  expect(mayChange(viewer("ben", "read", "submit"), "ana")).toBe(false);
  expect(mayChange(viewer("root", "read", "submit", "admin"), "ana")).toBe(true);
});

it("lets nobody do anything with a token that only reads", () => {
  expect(maySubmit(viewer("ana", "read"))).toBe(false);
  expect(mayChange(viewer("ana", "read"), "ana")).toBe(false);
  expect(mayChange(undefined, "ana")).toBe(false);
});
