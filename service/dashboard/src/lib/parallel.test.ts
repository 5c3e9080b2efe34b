import { expect, it } from "vitest";

import { across, down, draw, nameBox, nearest, SIDE, TALL, TOP } from "./parallel";

const WIDTH = 2 * SIDE + 100;
const columns = [[0, 1, null], [1, 0, 0.5]];

it("places axes from side to side, and what has no value below them", () => {
  expect([across(0, 3, WIDTH), across(1, 3, WIDTH), across(0, 1, WIDTH)]).toEqual([SIDE, SIDE + 50, WIDTH / 2]);
  expect([down(1), down(0)]).toEqual([TOP, TOP + TALL]);
  expect(down(null)).toBeGreaterThan(down(0));
});

it("keeps the names of axes apart and inside the edges", () => {
  const [first, middle, last] = [0, 1, 2].map((at) => nameBox(at, 3, 2 * SIDE + 400));
  const ends = { minWidth: 2 * SIDE - 12, maxWidth: SIDE + 88 };
  expect([first, last]).toEqual([{ left: 6, ...ends }, { right: 6, ...ends }]);
  expect(middle).toMatchObject({ left: SIDE + 200, maxWidth: 188 });
  expect(nameBox(0, 1, 600)).toMatchObject({ left: 300, maxWidth: 588 });
});

it("finds the line that is nearest to the pointer, among those that pass", () => {
  const at = (x: number, y: number, candidates = [0, 1, 2]) => nearest(columns, candidates, WIDTH, { x: SIDE + x, y });
  expect([at(0, down(0)), at(0, down(1)), at(0, down(null))]).toEqual([0, 1, 2]);
  expect(at(0, down(0), [1, 2])).toBeNull();
  expect(at(100, down(0.5))).toBe(2);
  expect(nearest([columns[0] ?? []], [0], WIDTH, { x: SIDE, y: down(0) })).toBeNull();
});

it("draws the pale ones in one stroke, each that passes in its colour, and the hovered one last", () => {
  const strokes: { color: string; lines: number; dashed: boolean }[] = [];
  let [lines, dashed] = [0, false];
  const pen = {
    strokeStyle: "", lineWidth: 1, globalAlpha: 1,
    clearRect: () => undefined, lineTo: () => undefined,
    beginPath: () => { lines = 0; },
    moveTo: () => { lines += 1; },
    setLineDash: (dash: number[]) => { dashed = dash.length > 0; },
    stroke: () => { strokes.push({ color: pen.strokeStyle, lines, dashed }); },
  };
  const looks = [{ color: "red", dashed: true }, { color: "a", dashed: false }, { color: "b", dashed: false }];
  draw(pen, {
    columns, looks, order: [2, 1, 0], selected: [true, false, false], hovered: 0, pale: "pale", width: WIDTH,
  });
  expect(strokes).toEqual([
    { color: "pale", lines: 2, dashed: false }, { color: "red", lines: 1, dashed: true }, { color: "red", lines: 1, dashed: true },
  ]);
});
