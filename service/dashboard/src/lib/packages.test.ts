import { expect, test } from "vitest";

import type { Environment } from "../api/types";
import { matching, packageDifferences } from "./packages";

const environment = (python: string, packages: Record<string, string>): Environment => (
  { interpreter: "/v/bin/python", python, packages, left_out: 0, error: null }
);

test("added, removed and changed packages are told, and those that are the same are not", () => {
  const before = environment("3.11.9", { torch: "2.12.0", numpy: "2.1", name: "1.0", own: "" });
  const after = environment("3.12.1", { torch: "2.13.0", numpy: "2.1", code: "0.1" });
  expect(packageDifferences([before, after])).toEqual([
    { path: "Python", values: [{ text: "3.11.9", of: [0] }, { text: "3.12.1", of: [1] }] },
    { path: "code", values: [{ text: "", of: [0] }, { text: "0.1", of: [1] }] },
    { path: "name", values: [{ text: "1.0", of: [0] }, { text: "", of: [1] }] },
    { path: "own", values: [{ text: "version unknown", of: [0] }, { text: "", of: [1] }] },
    { path: "torch", values: [{ text: "2.12.0", of: [0] }, { text: "2.13.0", of: [1] }] },
  ]);
  expect(packageDifferences([before, before])).toEqual([]);
});

test("an environment that is not known differs in nothing, and the others keep their places", () => {
  const one = environment("3.11.9", { torch: "2.12.0" });
  const other = environment("3.11.9", { torch: "2.13.0" });
  expect(packageDifferences([null, one, null, other])).toEqual([
    { path: "torch", values: [{ text: "2.12.0", of: [1] }, { text: "2.13.0", of: [3] }] },
  ]);
  expect(packageDifferences([null, one])).toEqual([]);
});

test("packages are found as people write them", () => {
  const packages = { torchvision: "0.24", "ruamel-yaml": "0.18", torch: "2.13.0" };
  expect(matching(packages, " Torch")).toEqual([["torch", "2.13.0"], ["torchvision", "0.24"]]);
  expect(matching(packages, "ruamel.yaml")).toEqual([["ruamel-yaml", "0.18"]]);
  expect(matching(packages, "")).toHaveLength(3);
});
