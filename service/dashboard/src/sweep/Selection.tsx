import { Plural, Trans } from "@lingui/react/macro";

import type { Job } from "../api/types";
import { type Key, nameOf, type TrialAxis } from "../lib/axes";
import { type Brushes, brushWords } from "../lib/brushes";
import { valueOf } from "../lib/trials";
import type { Kind } from "./Parallel";

interface Props {
  kind: Kind;
  trials: readonly Job[];
  /** What the colours tell; null where each line has its own. */
  metric: string | null;
  axes: readonly TrialAxis[];
  brushes: Brushes;
  selected: readonly boolean[];
  onClear: (key: Key | null) => void;
}

/** What is selected, by which brushes, and which trials have failed or have no value. */
export function Selection({ kind, trials, metric, axes, brushes, selected, onClear }: Props) {
  const drawn = axes.flatMap(({ key }) => (brushes[key] === undefined ? [] : [{ key, brush: brushes[key] }]));
  const passing = selected.filter(Boolean).length;
  const failed = trials.filter(({ state }) => state === "failed").length;
  const without = metric === null ? 0 : trials.filter((trial) => valueOf(trial, metric) === null).length;
  return (
    <div className="selection">
      <p role="status">
        {drawn.length === 0
          ? <Counted kind={kind} count={trials.length} />
          : <Chosen kind={kind} passing={passing} count={trials.length} />}
      </p>
      {drawn.map(({ key, brush }) => (
        <button key={key} type="button" className="button small" onClick={() => onClear(key)}>
          {nameOf(key)}: {brushWords(brush)} <span aria-hidden="true">×</span><span className="visually-hidden"><Trans>remove</Trans></span>
        </button>
      ))}
      {drawn.length > 0 && (
        <button type="button" className="button small" onClick={() => onClear(null)}><Trans>Select all</Trans></button>
      )}
      <ul className="trial-key">
        {metric !== null && <li><i className="trial-scale" /> <Trans>worst to best</Trans></li>}
        {failed > 0 && <li><i className="trial-failed" /> <Trans>{failed} failed</Trans></li>}
        {without > 0 && <li><Trans>{without} without {metric}</Trans></li>}
      </ul>
    </div>
  );
}

function Counted({ kind, count }: { kind: Kind; count: number }) {
  return kind === "trial"
    ? <Plural value={count} one="# trial" other="# trials" />
    : <Plural value={count} one="# run" other="# runs" />;
}

function Chosen({ kind, passing, count }: { kind: Kind; passing: number; count: number }) {
  return kind === "trial"
    ? (
        <Trans>
          <b>{passing}</b> <Plural value={count} one="of # trial selected" other="of # trials selected" />
        </Trans>
      )
    : (
        <Trans>
          <b>{passing}</b> <Plural value={count} one="of # run selected" other="of # runs selected" />
        </Trans>
      );
}
