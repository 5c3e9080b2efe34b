import { expect, it } from "vitest";

import { counted, reservable, resourceOf } from "./resources";

const node = (...kinds: ("gpu" | "cpu")[]) => ({ devices: kinds.map((kind) => ({ kind })) });

it("names what the nodes have", () => {
  expect(resourceOf([node("gpu"), node("gpu")]).many).toBe("GPUs");
  expect(resourceOf([node("cpu"), node("cpu")]).many).toBe("CPU slots");
  expect(resourceOf([node("gpu"), node("cpu")]).many).toBe("devices");
  expect(resourceOf([]).many).toBe("GPUs");
});

it("reserves GPUs, and CPU slots where no node has any", () => {
  expect(reservable(resourceOf([node("cpu")])).many).toBe("CPU slots");
  expect(reservable(resourceOf([node("gpu"), node("cpu")])).many).toBe("GPUs");
});

it("counts it in words", () => {
  const slots = resourceOf([node("cpu")]);
  expect([counted(0, slots), counted(1, slots), counted(2, slots)]).toEqual(["0 CPU slots", "1 CPU slot", "2 CPU slots"]);
});
