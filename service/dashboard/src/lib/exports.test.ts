import { expect, it } from "vitest";

import { toCsv, toSvg } from "./exports";
import { toTable } from "./series";

const table = toTable([
  { name: "loss", rank: 0, points: [[0, 10, 4], [1, 11, "nan"], [2, 12, 2]] },
  { name: "acc, top1", rank: 0, points: [[2, 12, 0.5]] },
], "step");

it("writes a row for each step, with words for what is no number", () => {
  expect(toCsv(table, ["loss", "acc, top1"], "step")).toBe("step,loss,\"acc, top1\"\n0,4,\n1,nan,\n2,2,0.5\n");
});

it("writes no formula for a name that looks like one", () => {
  expect(toCsv(table, ["=1+1", "a\rb"], "step")).toMatch(/^step,'=1\+1,"a\rb"\n/);
});

it("draws lines within the axes, broken where there is no number, and escapes names", () => {
  const frame = { title: "loss < 5", x: table.x, ink: "#000", grid: "#ccc", ground: "#fff" };
  const svg = toSvg(
    { ...frame, scale: { x: [0, 2], y: [0, 4], log: false }, ticks: { x: [{ at: 1, label: "1" }], y: [] } },
    [{ label: "loss", color: "#00f", column: table.columns[0] ?? [] }],
  );
  expect(svg).toContain("loss &lt; 5");
  expect(svg).toContain("d=\"M80.0 48.0M940.0 254.0\"");
});
