import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";

import { defaultAt, fieldsOf, type FormField, labelOf, type Schemas, unitAt } from "./schema";

const described = JSON.parse(readFileSync("../../openapi.json", "utf8")) as { components: { schemas: Schemas } };
const schemas = described.components.schemas;
const spec = schemas.JobSpec ?? {};
const fields = new Map(fieldsOf(spec, schemas).map((field) => [field.path.join("."), field]));
const kindOf = (name: string) => fields.get(name)?.kind;
const within = (field: FormField | undefined, name: string) =>
  field?.kind === "group" ? field.fields.find(({ path }) => path.at(-1) === name) : undefined;

describe("fieldsOf", () => {
  it("fills in each field of a spec by its type", () => {
    expect(kindOf("name")).toBe("text");
    expect(kindOf("tags")).toBe("list");
    expect(kindOf("command")).toBe("words");
    expect(kindOf("env")).toBe("variables");
    expect(kindOf("time_limit")).toBe("line");
    expect(kindOf("max_retries")).toBe("line");
    expect(kindOf("resources")).toBe("group");
    expect(kindOf("trackers")).toBe("yaml");
  });

  it("offers the values of a choice, and what it is without one", () => {
    expect(fields.get("priority")).toMatchObject({ options: ["low", "normal", "high", "urgent"], without: "normal" });
    expect(fields.get("preemptible")).toMatchObject({ options: [true, false], without: null });
    expect(fields.get("restartable")).toMatchObject({ options: ["auto", true, false], without: "auto" });
  });

  it("says what a limit is without one in its unit", () => {
    expect(fields.get("grace")).toMatchObject({ without: "1m", unit: "seconds" });
    expect(fields.get("log_limit")).toMatchObject({ without: "1GiB", unit: "bytes" });
    expect(fields.get("max_retries")).toMatchObject({ without: "0", unit: null });
  });

  it("tells the kinds of an object apart by their names", () => {
    const optim = within(fields.get("recipe"), "optim");
    expect(optim?.kind === "variant" && optim.variants.map(({ name }) => name)).toEqual(["adam", "adamw", "sgd"]);
    expect(optim?.kind === "variant" && optim.variants[0]?.fields[0]?.path).toEqual(["recipe", "optim", "lr"]);
  });
});

describe("defaultAt", () => {
  it("finds what a field is when it is left out", () => {
    expect(defaultAt(spec, schemas, ["priority"])).toBe("normal");
    expect(defaultAt(spec, schemas, ["resources", "gpus"])).toBe(1);
    expect(defaultAt(spec, schemas, ["recipe", "epochs"])).toBe(5);
    expect(defaultAt(spec, schemas, ["recipe", "schedule"])).toEqual({ name: "constant", warmup: 0 });
    expect(defaultAt(spec, schemas, ["unheard", "of"])).toBeUndefined();
  });
});

describe("unitAt", () => {
  it("finds what a number counts", () => {
    const paths = [["time_limit"], ["resources", "memory"], ["resources", "gpus"], ["unheard", "of"]];
    expect(paths.map((path) => unitAt(spec, schemas, path))).toEqual(["seconds", "bytes", null, null]);
  });
});

describe("labelOf", () => {
  it("reads as words", () => {
    expect(labelOf("time_limit")).toBe("Time limit");
    expect(labelOf("gpu_memory_min")).toBe("GPU memory min");
  });
});
