import { expect, it } from "vitest";

import openapi from "../../../../openapi.json";
import { stageLabel, STAGES } from "./stages";

it("names every stage of a start that the service has", () => {
  expect(Object.keys(STAGES)).toEqual(openapi.components.schemas.StartStageName.enum);
});

it("leaves the name of an unknown stage as it is", () => {
  expect([stageLabel("first step"), stageLabel("made up")]).toEqual(["first step", "made up"]);
});
