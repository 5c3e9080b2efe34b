import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";

import type { Schemas } from "./schema";
import { allFields, complaintsOf, fieldAt, specForm } from "./specForm";

const described = JSON.parse(readFileSync("../../openapi.json", "utf8")) as { components: { schemas: Schemas } };
const schemas = described.components.schemas;
const form = specForm(schemas.JobSpec ?? {}, schemas, null);
const fields = form === null ? [] : allFields(form);

describe("specForm", () => {
  it("has every field of the schema once, the resources' by themselves", () => {
    const paths = fields.map(({ path }) => path.join(".")).filter((path) => !path.startsWith("recipe."));
    const resources = Object.keys(schemas.Resources?.properties ?? {}).map((name) => `resources.${name}`);
    const others = Object.keys(schemas.JobSpec?.properties ?? {}).filter((name) => name !== "resources");
    expect(paths.sort()).toEqual([...others, ...resources].sort());
  });

  it("puts what it does not know into a group of its own", () => {
    const properties = { ...schemas.JobSpec?.properties, brand_new: { type: "string" } };
    const groups = specForm({ properties }, schemas, null)?.groups;
    expect(groups?.at(-1)).toMatchObject({ title: "Other fields", fields: [{ path: ["brand_new"], kind: "text" }] });
    expect(form?.groups.map(({ title }) => title)).not.toContain("Other fields");
  });
});

describe("fieldAt", () => {
  it("finds the field that a complaint names, or the nearest above it", () => {
    expect(fieldAt(fields, "resources.gpus")?.label).toBe("GPUs");
    expect(fieldAt(fields, "env.1A")?.path).toEqual(["env"]);
    expect(fieldAt(fields, "recipe.seed")?.path).toEqual(["recipe", "seed"]);
    expect(fieldAt(fields, "recipe.optim.lr")?.path).toEqual(["recipe", "optim", "lr"]);
    expect(fieldAt(fields, "(body)")).toBeNull();
  });
});

describe("complaintsOf", () => {
  it("shows what is wrong within a field at the field, and of a group only what is wrong with itself", () => {
    const complaints = [{ field: "env.1A", message: "no name" }, { field: "recipe.epochs", message: "too few" }];
    const of = (path: string) => {
      const field = fieldAt(fields, path);
      return field && complaintsOf(field, complaints).map(({ message }) => message);
    };
    expect(of("env")).toEqual(["no name"]);
    expect(of("recipe")).toEqual([]);
    expect(of("recipe.epochs")).toEqual(["too few"]);
  });
});
