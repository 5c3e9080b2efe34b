import { Link } from "@tanstack/react-router";
import { useMemo } from "react";

import type { Group, Job } from "../api/types";
import { metric as words } from "../lib/format";
import { type Mode, parameter, scatter, span, valueOf } from "../lib/trials";

const SHOWN = 6;

interface Props {
  sweep: Group;
  trials: readonly Job[];
  metric: string;
  mode: Mode;
}

/** The metric against each parameter, one small picture each: which ones matter shows at a glance. */
export function Pictures({ sweep, trials, metric, mode }: Props) {
  const names = Object.keys(sweep.sweep.parameters as Record<string, unknown>);
  const range = useMemo(() => span(trials, metric, mode), [trials, metric, mode]);
  return (
    <div className="pictures">
      {names.slice(0, SHOWN).map((name) => (
        <Picture key={name} name={name} trials={trials} metric={metric} range={range} best={sweep.best?.id} />
      ))}
    </div>
  );
}

interface PictureProps {
  name: string;
  trials: readonly Job[];
  metric: string;
  range: [number, number];
  best: string | undefined;
}

function Picture({ name, trials, metric, range, best }: PictureProps) {
  const drawn = useMemo(() => scatter(trials, name, metric, range), [trials, name, metric, range]);
  const { dots, ticks, logarithmic } = drawn;
  const shown = dots.toSorted((a, b) => Number(a.trial.id === best) - Number(b.trial.id === best));
  return (
    <figure className="picture">
      <figcaption>{name}{logarithmic && <span className="faint"> logarithmic</span>}</figcaption>
      <div className="picture-plot">
        <span className="picture-top">{words(range[1])}</span>
        <span className="picture-bottom">{words(range[0])}</span>
        <div className="picture-field" role="group" aria-label={`${metric} by ${name}`}>
          {shown.map(({ trial, x, y }) => (
            <Link
              key={trial.id}
              to="/jobs/$jobId"
              params={{ jobId: String(trial.number) }}
              className="dot"
              data-state={trial.state}
              data-best={trial.id === best || undefined}
              data-wild={y < 0 || y > 1 || undefined}
              style={{ left: `${x * 100}%`, bottom: `${Math.min(1, Math.max(0, y)) * 100}%` }}
              title={`${trial.name}: ${metric} ${words(valueOf(trial, metric) ?? "nan")} with ${name} ${
                parameter(trial.parameters?.[name])}`}
              aria-label={trial.name}
              tabIndex={-1}
            />
          ))}
        </div>
        <div className="picture-axis" aria-hidden="true">
          {ticks.map(({ at, words: text }) => (
            <span key={text} data-edge={at === 0 ? "left" : at === 1 ? "right" : undefined} style={{ left: `${at * 100}%` }}>
              {text}
            </span>
          ))}
        </div>
      </div>
    </figure>
  );
}
