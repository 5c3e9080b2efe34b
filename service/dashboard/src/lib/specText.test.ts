import { describe, expect, it } from "vitest";

import type { Path } from "./schema";
import { isSame, mergePatch, readSpec, shown, typed, withField, written } from "./specText";

describe("readSpec", () => {
  it("reads fields, and nothing as no fields", () => {
    expect(readSpec("name: a\nresources: {gpus: 2}\n").spec).toEqual({ name: "a", resources: { gpus: 2 } });
    expect(readSpec("# nothing yet\n").spec).toEqual({});
  });

  it("tells the line of what is no YAML, and keeps the text", () => {
    const text = "name: a\ntags: [b\npriority: low\n";
    const { fault, spec, text: kept } = readSpec(text);
    expect([spec, kept]).toEqual([null, text]);
    expect(fault?.line).toBeGreaterThan(1);
    expect(readSpec("name: a\nname: b\n").fault).toMatchObject({ line: 2, message: "Map keys must be unique" });
    expect(readSpec("- a\n").fault?.line).toBe(1);
    expect(readSpec("a: *b\n").fault).not.toBeNull();
  });
});

describe("withField", () => {
  it("sets a field and keeps comments and order", () => {
    const text = "# mine\nname: a # short\ntags: [b]\n";
    expect(withField(text, ["name"], "c")).toBe("# mine\nname: c # short\ntags: [b]\n");
  });

  it("makes what stands above a field, also of the bare name of a model", () => {
    expect(withField("", ["resources", "gpus"], 2)).toBe("resources:\n  gpus: 2\n");
    expect(withField("recipe: {}\n", ["recipe", "epochs"], 2)).toBe("recipe:\n  epochs: 2\n");
    expect(readSpec(withField("recipe: {model: resnet}\n", ["recipe", "model", "depth"], 18)).spec)
      .toEqual({ recipe: { model: { name: "resnet", depth: 18 } } });
  });

  it("takes a field away, with what is empty then", () => {
    expect(withField("name: a\nresources:\n  gpus: 2\n", ["resources", "gpus"], undefined)).toBe("name: a\n");
    expect(withField("name: a\n", ["name"], undefined)).toBe("");
    expect(withField("name: a\n", ["live"], undefined)).toBe("name: a\n");
  });
});

describe("typed and shown", () => {
  it("are each other's opposite", () => {
    expect(typed("list", "a\n b \n\n")).toEqual(["a", "b"]);
    expect(shown("list", ["a", "b"])).toBe("a\nb");
    expect(typed("variables", "A=1=2\n")).toEqual({ A: "1=2" });
    expect(shown("variables", { A: "1=2", B: 3 })).toBe("A=1=2\nB=3");
    expect(typed("line", "3")).toBe(3);
    expect(shown("line", 3_600, "seconds")).toBe("1h");
    expect(typed("line", "4h")).toBe("4h");
    expect(typed("text", "3")).toBe("3");
    expect(typed("yaml", "lr: [0.1]")).toEqual({ lr: [0.1] });
    expect(typed("text", " ")).toBeUndefined();
  });

  it("quote the words of a command as a shell reads them", () => {
    expect(shown("words", ["sh", "-c", "echo 'a b'"])).toBe("sh -c 'echo '\\''a b'\\'''");
    expect(shown("words", "python train.py")).toBe("python train.py");
  });

  it("name the mend of a variable without a value", () => {
    expect(() => typed("variables", "A")).toThrow("Write NAME=VALUE, not A");
  });
});

describe("written", () => {
  it("leaves out what stands for itself, and writes units", () => {
    const defaults: Record<string, unknown> = { priority: "normal", resources: { gpus: 1, nodes: 1 }, "resources.nodes": 1, "recipe.epochs": 5 };
    const spec = { name: "a", priority: "normal", live: null, time_limit: 7_200, resources: { gpus: 2, nodes: 1 }, recipe: { epochs: 5 } };
    const known = (path: Path) => ({ usual: defaults[path.join(".")], unit: path[0] === "time_limit" ? "seconds" as const : null });
    expect(written(spec, known)).toEqual({ name: "a", time_limit: "2h", resources: { gpus: 2 }, recipe: {} });
  });
});

describe("mergePatch", () => {
  it("changes one spec into the other, and says null for what is gone", () => {
    const before = { name: "a", resources: { gpus: 1, nodes: 1 }, env: { A: "1" }, live: null, tags: ["x"] };
    expect(mergePatch(before, { name: "a", resources: { gpus: 2 }, tags: ["y"] }))
      .toEqual({ resources: { gpus: 2, nodes: null }, env: null, tags: ["y"] });
  });
});

describe("isSame", () => {
  it("does not mind the order of names", () => {
    expect(isSame({ a: [1], b: 2 }, { b: 2, a: [1] })).toBe(true);
    expect(isSame({ a: 1 }, { a: 1, b: 2 })).toBe(false);
    expect(isSame([1], [1, 2])).toBe(false);
  });
});
