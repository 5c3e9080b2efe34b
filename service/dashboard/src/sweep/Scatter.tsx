import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useNavigate } from "@tanstack/react-router";
import { memo, type MouseEvent, useMemo } from "react";

import type { Job } from "../api/types";
import { axisOf, type Key, nameOf, readKey } from "../lib/axes";
import { STATE_LABELS } from "../lib/states";
import { likelyMode, type Mode, parameter } from "../lib/trials";
import { Panel } from "../ui/Panel";

/** The plot in its own units: its sides, and where what has no value stands. */
const [WIDE, TALL, GAP] = [520, 250, 22];

interface Props {
  trials: readonly Job[];
  /** Where the values of each parameter come from. */
  forms: Readonly<Record<string, unknown>>;
  metrics: readonly string[];
  /** What trials are compared by. */
  metric: string;
  mode: Mode;
  x: Key;
  y: Key;
  colors: readonly string[];
  /** Trials from the worst to the best. */
  order: readonly number[];
  selected: readonly boolean[];
  onChange: (change: { x?: Key; y?: Key }) => void;
}

/** Any parameter or metric of the trials against any metric. */
export function Scatter({ trials, forms, metrics, metric, mode, x, y, colors, order, selected, onChange }: Props) {
  const navigate = useNavigate();
  const [across, up] = useMemo(() => {
    const modeOf = (name: string) => (name === metric ? mode : likelyMode(name));
    const of = (key: Key) => axisOf(trials, key, { mode: modeOf(nameOf(key)), form: forms[nameOf(key)] });
    return [of(x), of(y)] as const;
  }, [trials, forms, x, y, metric, mode]);
  const keys: Key[] = [...Object.keys(forms).map((name): Key => `parameter:${name}`), ...metrics.map((name): Key => `metric:${name}`)];
  const ups: Key[] = metrics.map((name): Key => `metric:${name}`);
  const open = ({ target }: MouseEvent) => {
    const number = (target as SVGElement).dataset.number;
    if (number !== undefined) void navigate({ to: "/jobs/$jobId", params: { jobId: number } });
  };
  const tools = (
    <>
      <KeySelect label={t`Across`} keys={keys} value={x} onChange={(next) => onChange({ x: next })} />
      <KeySelect label={t`Up`} keys={ups} value={y} onChange={(next) => onChange({ y: next })} />
    </>
  );
  return (
    <Panel title={t`Scatter`} tools={tools}>
      <svg
        className="scatter"
        viewBox={`-74 -14 ${WIDE + 110} ${TALL + 84}`}
        role="img"
        aria-label={t`${{ up: nameOf(y) }} by ${{ across: nameOf(x) }} of ${{ count: trials.length }} trials`}
        onClick={open}
      >
        <path className="scatter-frame" d={`M 0 0 V ${TALL} H ${WIDE}`} />
        {up.ticks.map(({ at, words }) => (
          <g key={at}>
            <path className="scatter-grid" d={`M 0 ${(1 - at) * TALL} H ${WIDE}`} />
            <text x={-8} y={(1 - at) * TALL + 4} textAnchor="end">{words}</text>
          </g>
        ))}
        {across.ticks.map(({ at, words }) => (
          <text key={at} x={at * WIDE} y={TALL + GAP + 22} textAnchor="middle">{words}</text>
        ))}
        <text className="scatter-name" x={WIDE / 2} y={TALL + GAP + 44} textAnchor="middle">
          {across.kind === "log" ? t`${{ name: nameOf(x) }} (log)` : nameOf(x)}
        </text>
        {order.map((at) => {
          const trial = trials[at];
          if (trial === undefined) return null;
          const [left, height] = [across.place(readKey(trial, x)), up.place(readKey(trial, y))];
          return (
            <Dot
              key={trial.id}
              number={trial.number}
              left={left === null ? -GAP * 0.6 : left * WIDE}
              top={height === null ? TALL + GAP * 0.6 : (1 - height) * TALL}
              color={colors[at] ?? ""}
              hollow={trial.state === "failed" || height === null || left === null}
              shown={selected[at] ?? false}
              title={titleOf(trial, x, y)}
            />
          );
        })}
      </svg>
      <p className="faint compare-hint">
        <Trans>Hollow: failed, or without a value, which stands outside the axes.</Trans>
      </p>
    </Panel>
  );
}

function titleOf(trial: Job, x: Key, y: Key): string {
  const told = (key: Key) => `${nameOf(key)} ${parameter(readKey(trial, key) ?? null)}`;
  const [up, across] = [told(y), told(x)];
  return t`Trial ${{ trial: trial.trial ?? "" }}, ${{ state: STATE_LABELS[trial.state] }}: ${up} with ${across}`;
}

interface DotProps {
  number: number;
  left: number;
  top: number;
  color: string;
  hollow: boolean;
  shown: boolean;
  title: string;
}

/** Drawn anew only where it changes: a brush moves over hundreds. */
const Dot = memo(function Dot({ number, left, top, color, hollow, shown, title }: DotProps) {
  return (
    <circle
      className="dot"
      data-number={number}
      data-out={!shown || undefined}
      cx={left}
      cy={top}
      r={4.5}
      style={{ fill: hollow ? "var(--surface)" : color, stroke: hollow ? color : "var(--surface)" }}
    >
      <title>{title}</title>
    </circle>
  );
});

interface SelectProps {
  label: string;
  keys: readonly Key[];
  value: Key;
  onChange: (key: Key) => void;
}

function KeySelect({ label, keys, value, onChange }: SelectProps) {
  return (
    <label className="key-select">
      <span>{label}</span>
      <select value={value} onChange={({ target }) => onChange(target.value as Key)}>
        {(keys.includes(value) ? keys : [value, ...keys]).map((key) => (
          <option key={key} value={key}>{nameOf(key)}</option>
        ))}
      </select>
    </label>
  );
}
