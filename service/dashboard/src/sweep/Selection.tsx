import { Plural, Trans } from "@lingui/react/macro";

import type { Job } from "../api/types";
import { type Key, nameOf, type TrialAxis } from "../lib/axes";
import { type Brushes, brushWords } from "../lib/brushes";
import { valueOf } from "../lib/trials";

interface Props {
  trials: readonly Job[];
  metric: string;
  axes: readonly TrialAxis[];
  brushes: Brushes;
  selected: readonly boolean[];
  onClear: (key: Key | null) => void;
}

/** What is selected, by which brushes, and which trials have failed or have no value. */
export function Selection({ trials, metric, axes, brushes, selected, onClear }: Props) {
  const drawn = axes.flatMap(({ key }) => (brushes[key] === undefined ? [] : [{ key, brush: brushes[key] }]));
  const passing = selected.filter(Boolean).length;
  const failed = trials.filter(({ state }) => state === "failed").length;
  const without = trials.filter((trial) => valueOf(trial, metric) === null).length;
  const count = trials.length;
  return (
    <div className="selection">
      <p role="status">
        {drawn.length === 0
          ? <Plural value={count} one="# trial" other="# trials" />
          : (
              <Trans>
                <b>{passing}</b> <Plural value={count} one="of # trial selected" other="of # trials selected" />
              </Trans>
            )}
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
        <li><i className="trial-scale" /> <Trans>worst to best</Trans></li>
        {failed > 0 && <li><i className="trial-failed" /> <Trans>{failed} failed</Trans></li>}
        {without > 0 && <li><Trans>{without} without {metric}</Trans></li>}
      </ul>
    </div>
  );
}
