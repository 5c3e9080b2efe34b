import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useNavigate } from "@tanstack/react-router";
import { type MouseEvent, useEffect, useMemo, useRef, useState } from "react";

import type { Job } from "../api/types";
import { type Key, nameOf, readKey, type TrialAxis } from "../lib/axes";
import type { Brush, Brushes } from "../lib/brushes";
import { resolveColor } from "../lib/colors";
import { across, draw, HEIGHT, nameBox, nearest, SIDE } from "../lib/parallel";
import { STATE_LABELS } from "../lib/states";
import { useTheme } from "../lib/theme";
import { parameter } from "../lib/trials";
import { ParallelAxis } from "./ParallelAxis";

/** Axes stand no nearer to one another. */
const APART = 104;

/** What the lines are. */
export type Kind = "trial" | "run";
const HINTS: Record<Kind, string> = {
  trial: t`Drag along an axis to select trials; a click on the axis, or Escape, removes the brush.`,
  run: t`Drag along an axis to select runs; a click on the axis, or Escape, removes the brush.`,
};

interface Props {
  kind: Kind;
  trials: readonly Job[];
  axes: readonly TrialAxis[];
  colors: readonly string[];
  /** Trials from the worst to the best. */
  order: readonly number[];
  brushes: Brushes;
  selected: readonly boolean[];
  onBrush: (key: Key, brush: Brush | null, done: boolean) => void;
}

/** A line for each trial, or run, through all of its parameters to what it came to. */
export function Parallel({ kind, trials, axes, colors, order, brushes, selected, onBrush }: Props) {
  const navigate = useNavigate();
  const [box, width] = useWidth(axes.length);
  const columns = useMemo(
    () => axes.map((axis) => trials.map((trial) => axis.place(readKey(trial, axis.key)))), [axes, trials],
  );
  const [hovered, setHovered] = useState<number | null>(null);
  const canvas = useCanvas({ trials, colors, columns, order, selected, hovered, width });
  const candidates = useMemo(() => order.filter((at) => selected[at]), [order, selected]);
  const onMove = ({ nativeEvent: { offsetX, offsetY } }: MouseEvent) => (
    setHovered(nearest(columns, candidates, width, { x: offsetX, y: offsetY }))
  );
  const told = hovered === null ? undefined : trials[hovered];
  return (
    <div className="parallel-box" ref={box} tabIndex={0} role="region" aria-label={t`Parallel coordinates`}>
      <div className="parallel" style={{ width }}>
        <div className="parallel-names">
          {axes.map((axis, at) => (
            <span key={axis.key} style={nameBox(at, axes.length, width)} title={nameOf(axis.key)}>
              {nameOf(axis.key)}
              {axis.kind === "log" && <span className="faint"> <Trans>log</Trans></span>}
            </span>
          ))}
        </div>
        <div className="parallel-field" style={{ height: HEIGHT }}>
          <canvas
            ref={canvas}
            style={{ width, height: HEIGHT, cursor: told === undefined ? "default" : "pointer" }}
            aria-hidden="true"
            onMouseMove={onMove}
            onMouseLeave={() => setHovered(null)}
            onClick={() => told && void navigate({ to: "/jobs/$jobId", params: { jobId: String(told.number) } })}
          />
          {axes.map((axis, at) => (
            <ParallelAxis
              key={axis.key}
              axis={axis}
              left={across(at, axes.length, width)}
              brush={brushes[axis.key]}
              gaps={columns[at]?.includes(null) ?? false}
              onBrush={(brush, done) => onBrush(axis.key, brush, done)}
            />
          ))}
        </div>
      </div>
      <p className="parallel-told faint" aria-live="off">
        {told === undefined
          ? HINTS[kind]
          : wordsOf(kind, told, axes)}
      </p>
    </div>
  );
}

/** A line with its values on all axes. */
function wordsOf(kind: Kind, job: Job, axes: readonly TrialAxis[]): string {
  const values = axes.map(({ key }) => `${nameOf(key)} ${parameter(readKey(job, key) ?? null)}`).join(", ");
  const [{ number, name }, state] = [job, STATE_LABELS[job.state]];
  return kind === "trial"
    ? t`Trial ${{ trial: job.trial ?? "" }}, ${{ state: STATE_LABELS[job.state] }}: ${values}`
    : t`Run ${number} ${name}, ${state}: ${values}`;
}

/** The width that the axes get: that of the box, or more where they would stand too near. */
function useWidth(axes: number) {
  const box = useRef<HTMLDivElement>(null);
  const [given, setGiven] = useState(0);
  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    const watch = new ResizeObserver(() => setGiven(element.clientWidth));
    watch.observe(element);
    return () => watch.disconnect();
  }, []);
  return [box, Math.max(given, 2 * SIDE + (axes - 1) * APART)] as const;
}

interface Drawn {
  trials: readonly Job[];
  colors: readonly string[];
  columns: readonly (readonly (number | null)[])[];
  order: readonly number[];
  selected: readonly boolean[];
  hovered: number | null;
  width: number;
}

function useCanvas({ trials, colors, columns, order, selected, hovered, width }: Drawn) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [theme] = useTheme();
  useEffect(() => {
    const element = canvas.current;
    const scale = window.devicePixelRatio;
    if (element === null) return;
    element.width = width * scale;
    element.height = HEIGHT * scale;
  }, [width]);
  const looks = useRef<{ color: string; dashed: boolean }[]>([]);
  useEffect(() => {
    const element = canvas.current;
    if (element === null) return;
    const known = new Map([...new Set(colors)].map((color) => [color, resolveColor(element, color)]));
    looks.current = trials.map(({ state }, at) => (
      { color: known.get(colors[at] ?? "") ?? "", dashed: state === "failed" }
    ));
  }, [trials, colors, theme]);
  useEffect(() => {
    const element = canvas.current;
    const pen = element?.getContext("2d");
    if (element === null || pen == null) return;
    const frame = requestAnimationFrame(() => {
      const scale = window.devicePixelRatio;
      pen.setTransform(scale, 0, 0, scale, 0, 0);
      const pale = resolveColor(element, "var(--strong-line)");
      draw(pen, { columns, looks: looks.current, order, selected, hovered, pale, width });
    });
    return () => cancelAnimationFrame(frame);
  }, [trials, colors, columns, order, selected, hovered, width, theme]);
  return canvas;
}
