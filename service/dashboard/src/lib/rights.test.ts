import { expect, it } from "vitest";

import { mayAdministerProject, mayChange, mayEndToken, maySubmit, prioritiesOf, type Viewer } from "./rights";

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

it("lets only members submit to a closed project, and others end what they have there", () => {
  const closed: Viewer = { ...viewer("ana", "read", "submit"), closed_projects: ["vision"] };
  expect(maySubmit(closed, "vision")).toBe(false);
  expect(maySubmit(closed, "text")).toBe(true);
  expect(mayChange(closed, work)).toBe(true);
});

it("lets a project's administrators and those of all say who is in it", () => {
  const lead: Viewer = { ...viewer("ana", "read", "submit"), roles: { vision: "administrator" } };
  expect(mayAdministerProject(lead, "vision")).toBe(true);
  expect(mayAdministerProject(lead, "text")).toBe(false);
  expect(mayAdministerProject({ ...lead, scopes: ["read"] }, "vision")).toBe(false);
  expect(mayAdministerProject(viewer("root", "read", "submit", "admin"), "text")).toBe(true);
});

it("ends no token that may more than the one in use", () => {
  expect(mayEndToken(viewer("ana", "read", "submit"), { scopes: ["submit"] })).toBe(true);
  expect(mayEndToken(viewer("ana", "read"), { scopes: ["submit"] })).toBe(false);
  expect(mayEndToken(viewer("root", "admin", "read", "submit"), { scopes: ["node"] })).toBe(true);
  expect(mayEndToken(null, { scopes: ["read"] })).toBe(false);
});

it("keeps urgent jobs for administrators", () => {
  expect(prioritiesOf(false)).toEqual(["low", "normal", "high"]);
  expect(prioritiesOf(true)).toEqual(["low", "normal", "high", "urgent"]);
});
