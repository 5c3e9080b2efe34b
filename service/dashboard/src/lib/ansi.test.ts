import { expect, test } from "vitest";

import { marked, plain, spans } from "./ansi";

test("colours and weights are told apart", () => {
  expect(spans("a \u001b[1;31mred\u001b[0m b")).toEqual([
    { text: "a ", look: "", color: null }, { text: "red", look: "ansi-1 ansi-bold", color: null },
    { text: " b", look: "", color: null },
  ]);
  expect(spans("\u001b[94mx\u001b[39my").map(({ look }) => look)).toEqual(["ansi-12", ""]);
  expect(spans("\u001b[38;2;1;2;3mx")[0]?.color).toBe("rgb(1 2 3)");
  expect(spans("\u001b[38;5;196;4mx")[0]).toEqual({ text: "x", look: "ansi-underline", color: "rgb(255 0 0)" });
  expect(spans("\u001b[48;5;196mx")[0]?.color).toBeNull();
  expect(spans("\u001b[38;5;9mx\u001b[38;5;232my").map(({ look, color }) => look || color)).toEqual(["ansi-9", "rgb(8 8 8)"]);
});

test("what a terminal would not show is left out", () => {
  expect(plain("10%\r100%\u001b[K\u0007\r")).toBe("100%");
  expect(spans("")).toEqual([]);
});

test("words are found whatever their size", () => {
  expect(marked("Loss nan NaN", "nan")).toEqual([
    { text: "Loss ", hit: false }, { text: "nan", hit: true }, { text: " ", hit: false }, { text: "NaN", hit: true },
  ]);
  expect(marked("x", "")).toEqual([{ text: "x", hit: false }]);
});
