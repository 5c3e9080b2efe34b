import "../styles/sweep.css";

import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useMemo } from "react";

import { type Key, nameOf } from "../lib/axes";
import { type Brushes, withBrush } from "../lib/brushes";
import type { Coordinates } from "../lib/coordinates";
import type { Run } from "../lib/runs";
import { Parallel } from "../sweep/Parallel";
import { Selection } from "../sweep/Selection";
import { Panel } from "../ui/Panel";
import { Choice } from "./Choice";

interface Props {
  coordinates: Coordinates;
  runs: readonly Run[];
  brushes: Brushes;
  selected: readonly boolean[];
  onBrush: (brushes: Brushes, done: boolean) => void;
  onAxes: (axes: Key[]) => Promise<void>;
}

/** A line for each run through what runs differ by to what its metrics came to; brushes choose the runs of the page. */
export default function ParallelPanel({ coordinates, runs, brushes, selected, onBrush, onAxes }: Props) {
  const { trials, keys, axes } = coordinates;
  const colors = useMemo(() => runs.map(({ color }) => color), [runs]);
  const order = useMemo(() => runs.map(({ index }) => index), [runs]);
  const shown = axes.map(({ key }) => key);
  return (
    <Panel
      title={t`Runs compared`}
      tools={(
        <Choice
          label={t`Axes`}
          summary={t`${{ shown: shown.length }} of ${{ all: keys.length }} axes`}
          names={keys}
          chosen={shown}
          words={nameOf}
          onChange={onAxes}
        />
      )}
    >
      <Selection
        kind="run"
        trials={trials}
        metric={null}
        axes={axes}
        brushes={brushes}
        selected={selected}
        onClear={(key) => onBrush(key === null ? {} : withBrush(brushes, key, null), true)}
      />
      {axes.length < 2
        ? <p className="soft pad"><Trans>Choose two axes or more.</Trans></p>
        : (
            <Parallel
              kind="run"
              trials={trials}
              axes={axes}
              colors={colors}
              order={order}
              brushes={brushes}
              selected={selected}
              onBrush={(key, one, done) => onBrush(withBrush(brushes, key, one), done)}
            />
          )}
    </Panel>
  );
}
