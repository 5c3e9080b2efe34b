import { t } from "@lingui/core/macro";
import { type KeyboardEvent, type RefObject, useState } from "react";
import type uPlot from "uplot";

import type { Range } from "../lib/buckets";
import { nextRow, rangeOfKey } from "./keys";

const ROWS = { ArrowLeft: -1, ArrowRight: 1 } as const;

/**
 * What makes a chart one that keys move, zoom and read.
 *
 * @param show shows a part of the axis, or all of it for null.
 * @returns properties of its element, and whether keys read it now: what they read is then to be said aloud.
 */
export function useChartKeys(plot: RefObject<uPlot | undefined>, name: string, show: (range: Range | null) => void) {
  const [reading, setReading] = useState(false);
  const onKeyDown = (event: KeyboardEvent) => {
    const chart = plot.current;
    if (chart === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    const by = event.shiftKey ? ROWS[event.key as keyof typeof ROWS] : undefined;
    const { min, max } = chart.scales.x ?? {};
    if (typeof min !== "number" || typeof max !== "number") return;
    if (by !== undefined) {
      read(chart, by);
      setReading(true);
    } else {
      const range = rangeOfKey(event.key, { start: min, end: max });
      if (range === undefined) return;
      show(range);
    }
    event.preventDefault();
  };
  const onBlur = () => {
    if (reading) plot.current?.setCursor({ left: AWAY, top: AWAY });
    setReading(false);
  };
  const label = t`${name}; arrows move, plus and minus zoom, 0 shows all, Shift with arrows reads values`;
  return { reading, keyed: { role: "group", tabIndex: 0, "aria-label": label, onKeyDown, onBlur } };
}

/** Where uPlot's pointer is that is over no chart. */
const AWAY = -10;

/** Moves the chart's pointer to the next point. */
function read(chart: uPlot, by: -1 | 1): void {
  const [first, last] = chart.series[0]?.idxs ?? [0, chart.data[0].length - 1];
  const x = chart.data[0][nextRow(chart.cursor.idx, by, [first, last])];
  if (x === undefined) return;
  const top = (chart.cursor.top ?? 0) >= 0 ? chart.cursor.top ?? 0 : chart.over.clientHeight / 2;
  chart.setCursor({ left: chart.valToPos(x, "x"), top });
}
