import { expect, it } from "vitest";

import openapi from "../../../../openapi.json";
import type { Attention } from "../api/types";
import { attentionWords } from "./attention";

const words = (kind: Attention["kind"], params: Attention["params"] = {}, locale = "zh-CN") => (
  attentionWords({ kind, message: "as the service says", params }, locale)
);
const finding = { code: "broken", message: "off", params: {} };
const error = { cause: "exit", message: "rank 0 exited with code 1", rank: 0, exit_code: 1, params: { told: "exit" } };

it("knows every kind that the service has", () => {
  const params = { error, metric: "loss", value: "nan", minutes: 10, free: "1 GiB", least: "2 GiB", unit: "gpu", index: 1, said: "hot", finding };
  const known = openapi.components.schemas.Attention.properties.kind.enum as Attention["kind"][];
  expect(known.filter((kind) => words(kind, params) === "as the service says")).toEqual([]);
});

it("tells what is wrong", () => {
  expect(words("failed", { error })).toBe("rank 0 exited with code 1");
  expect(words("disk-low", { free: "1 GiB", least: "2 GiB" })).toBe("has 1 GiB of disk free: no job starts there below 2 GiB");
  expect(words("device-unusable", { unit: "cpu", index: 3, said: "hot" })).toBe("CPU slot 3 is out of use: hot");
});

it("leaves to the service English, and what has no details", () => {
  expect(words("hung", {}, "en")).toBe("as the service says");
  const bare = ["failed", "nan", "idle", "disk-low", "device-unusable", "offender"] as const;
  expect(bare.filter((kind) => words(kind) !== "as the service says")).toEqual([]);
});
