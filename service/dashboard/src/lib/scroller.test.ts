import { expect, it, vi } from "vitest";

import { LINE, MOST_PIXELS, Scroller } from "./scroller";

const HEIGHT = 180;

/** A box of ten lines' height, and what scrolls in it. */
function scrolled(lines: number) {
  const box = { clientHeight: HEIGHT, scrollTop: 0 };
  const scroller = new Scroller(box, vi.fn());
  scroller.grow(lines);
  return { box, scroller };
}

it("follows the end of a log that grows until one scrolls up, and again from the end on", () => {
  const { box, scroller } = scrolled(100);
  expect(box.scrollTop).toBe(100 * LINE - HEIGHT);
  scroller.grow(110);
  expect(box.scrollTop).toBe(110 * LINE - HEIGHT);
  box.scrollTop = 500;
  scroller.read();
  scroller.grow(120);
  expect([box.scrollTop, scroller.following]).toEqual([500, false]);
  box.scrollTop = 120 * LINE - HEIGHT;
  scroller.read();
  scroller.grow(130);
  expect([box.scrollTop, scroller.following]).toEqual([130 * LINE - HEIGHT, true]);
});

it("stays where one has scrolled to where lines come before the browser tells of it", () => {
  const { box, scroller } = scrolled(100);
  box.scrollTop = 500;
  scroller.grow(110);
  expect([box.scrollTop, scroller.following]).toEqual([500, false]);
});

it("shows the same lines of a log whose scrollbar has become coarse", () => {
  const { box, scroller } = scrolled(MOST_PIXELS / LINE - 10);
  box.scrollTop = 1_000_000;
  scroller.read();
  scroller.grow(2 * MOST_PIXELS / LINE);
  expect(scroller.top).toBe(1_000_000);
  expect(box.scrollTop).toBeCloseTo(500_000, -2);
  const stop = vi.fn();
  scroller.wheel({ ctrlKey: false, deltaY: -LINE, preventDefault: stop });
  expect([scroller.top, stop.mock.calls.length]).toEqual([1_000_000 - LINE, 1]);
});
