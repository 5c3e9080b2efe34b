import { expect, it } from "vitest";

import openapi from "../../../../openapi.json";
import { priorityLabel } from "./priorities";

it("has a word for each class, and shows one that is new", () => {
  expect(openapi.components.schemas.Priority.enum.map(priorityLabel)).toEqual(["low", "normal", "high", "urgent"]);
  expect(priorityLabel("idle")).toBe("idle");
});
