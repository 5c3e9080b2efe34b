import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { type KeyboardEvent, type PointerEvent, useRef } from "react";

import { nameOf, type TrialAxis } from "../lib/axes";
import { type Brush, brushOf, brushWords, type Part, partOf } from "../lib/brushes";
import { LANE, TALL, TOP } from "../lib/parallel";

/** A press that moves less is a click. */
const CLICK_PX = 4;
const STEP = 0.05;

interface Props {
  axis: TrialAxis;
  left: number;
  brush: Brush | undefined;
  /** Whether a trial has no value on the axis. */
  gaps: boolean;
  /** A brush while it is drawn, and once it is `done`; null for none. */
  onBrush: (brush: Brush | null, done: boolean) => void;
}

interface Drag {
  from: number;
  /** The part that is moved; null while a new one is drawn. */
  part: Part | null;
  moved: boolean;
}

/** An axis to brush: dragging draws or moves a brush, a click removes it, the handles take arrow keys and Escape. */
export function ParallelAxis({ axis, left, brush, gaps, onBrush }: Props) {
  const strip = useRef<HTMLDivElement>(null);
  const drag = useRef<Drag>(null);
  const part = brush === undefined ? null : partOf(axis, brush);
  const name = nameOf(axis.key);
  const placeAt = ({ clientY }: PointerEvent) => (
    1 - (clientY - (strip.current?.getBoundingClientRect().top ?? 0)) / TALL
  );
  const brushed = (at: number) => {
    const { from, part: moved } = drag.current ?? { from: at, part: null };
    return brushOf(axis, moved === null ? [from, at] : shifted(moved, at - from));
  };
  const onPointerDown = (event: PointerEvent<HTMLDivElement>) => {
    if (event.button !== 0 || (event.target as Element).role === "slider") return;
    event.currentTarget.setPointerCapture(event.pointerId);
    const at = placeAt(event);
    drag.current = { from: at, part: part !== null && at >= part[0] && at <= part[1] ? part : null, moved: false };
  };
  const onPointerMove = (event: PointerEvent<HTMLDivElement>) => {
    const now = drag.current;
    if (now === null) return;
    const at = placeAt(event);
    if (!now.moved && Math.abs(at - now.from) * TALL < CLICK_PX) return;
    now.moved = true;
    onBrush(brushed(at), false);
  };
  const onPointerUp = (event: PointerEvent<HTMLDivElement>) => {
    const now = drag.current;
    if (now === null) return;
    const at = placeAt(event);
    onBrush(now.moved ? brushed(at) : brush === undefined ? wordAt(axis, at) : null, true);
    drag.current = null;
  };
  // The browser takes the pointer away: what was drawn so far stays.
  const onPointerCancel = () => {
    if (drag.current?.moved === true) onBrush(brush ?? null, true);
    drag.current = null;
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (brush === undefined || !["Escape", "Delete", "Backspace"].includes(event.key)) return;
    event.preventDefault();
    onBrush(null, true);
  };
  const [from, to] = part ?? [0, 1];
  const handle = (label: string, at: number, change: (by: number) => Part) => (
    <Handle
      label={label}
      at={at}
      words={brush === undefined ? t`all` : brushWords(brush)}
      step={axis.kind === "words" ? 1 / axis.order.length : STEP}
      onMove={(by) => onBrush(brushOf(axis, change(by)), true)}
    />
  );
  return (
    <div className="parallel-axis" style={{ left }} onKeyDown={onKeyDown} role="group" aria-label={name}>
      <div
        ref={strip}
        className="parallel-strip"
        style={{ top: TOP, height: TALL }}
        data-axis={axis.key}
        title={t`Drag to select, click to select all`}
        onPointerDown={onPointerDown}
        onPointerMove={onPointerMove}
        onPointerUp={onPointerUp}
        onPointerCancel={onPointerCancel}
      >
        {axis.ticks.map(({ at, words }) => (
          <span key={at} className="parallel-tick" style={{ bottom: `${at * 100}%` }}>{words}</span>
        ))}
        {part !== null && <i className="parallel-brush" style={{ bottom: `${from * 100}%`, height: `${(to - from) * 100}%` }} />}
        {handle(t`Least ${name}`, from, (by) => [Math.min(to, from + by), to])}
        {handle(t`Most ${name}`, to, (by) => [from, Math.max(from, to + by)])}
      </div>
      {gaps && (
        <button
          type="button"
          className="parallel-none"
          style={{ top: TOP + TALL + LANE }}
          aria-pressed={brush?.length === 0}
          aria-label={t`none of ${name}`}
          onClick={() => onBrush(brush?.length === 0 ? null : [], true)}
        >
          <Trans>none</Trans>
        </button>
      )}
    </div>
  );
}

/** A part that is moved, and stays as large. */
function shifted([from, to]: Part, by: number): Part {
  const kept = Math.max(-from, Math.min(1 - to, by));
  return [from + kept, to + kept];
}

/** The word that is clicked; a scale has none. */
function wordAt(axis: TrialAxis, at: number): Brush | null {
  if (axis.kind !== "words") return null;
  const index = Math.min(axis.order.length - 1, Math.max(0, Math.floor(at * axis.order.length)));
  return axis.order.slice(index, index + 1);
}

interface HandleProps {
  label: string;
  at: number;
  words: string;
  step: number;
  onMove: (by: number) => void;
}

function Handle({ label, at, words, step, onMove }: HandleProps) {
  const onKeyDown = (event: KeyboardEvent) => {
    const sign = event.key === "ArrowUp" ? 1 : event.key === "ArrowDown" ? -1 : 0;
    if (sign === 0) return;
    event.preventDefault();
    onMove(sign * step * 1.001);
  };
  return (
    <div
      className="parallel-handle"
      style={{ bottom: `${at * 100}%` }}
      role="slider"
      tabIndex={0}
      aria-label={label}
      aria-orientation="vertical"
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={Math.round(at * 100)}
      aria-valuetext={words}
      onKeyDown={onKeyDown}
    />
  );
}
