import { expect, it } from "vitest";

import { mayChange, maySubmit, type Viewer } from "./rights";

const viewer = (name: string, ...scopes: string[]): Viewer => ({ user: { name }, scopes });
const work = { user: "ana", project: "vision" };

it("lets owners and administrators change a job", () => {
  expect(mayChange(viewer("ana", "read", "submit"), work)).toBe(true);
  expect(mayChange(viewer("ben", "read", "submit"), work)).toBe(false);
  expect(mayChange(viewer("root", "read", "submit", "admin"), work)).toBe(true);
});

it("lets nobody do anything with a token that only reads", () => {
  expect(maySubmit(viewer("ana", "read"), "vision")).toBe(false);
  expect(mayChange(viewer("ana", "read"), work)).toBe(false);
  expect(mayChange(undefined, work)).toBe(false);
});

it("goes by the role in the project, else by that on the installation", () => {
  const as = (name: string, role: string, own: string): Viewer => (
    { user: { name, role: own }, scopes: ["read", "submit"], roles: { vision: role } }
  );
  expect(mayChange(as("ben", "administrator", "viewer"), work)).toBe(true);
  expect(mayChange(as("ana", "viewer", "member"), work)).toBe(false);
  expect(mayChange(as("ana", "member", "viewer"), work)).toBe(true);
  expect(maySubmit(as("ana", "member", "viewer"), "text")).toBe(false);
  expect(mayChange({ ...viewer("ben", "read", "submit"), user: { name: "ben", role: "administrator" } }, work)).toBe(false);
});
