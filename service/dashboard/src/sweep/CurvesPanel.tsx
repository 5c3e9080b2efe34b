import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useMemo, useState } from "react";

import type { Job } from "../api/types";
import { RunsChart } from "../compare/RunsChart";
import { useSettledView } from "../compare/useSettledView";
import { View } from "../compare/view";
import { Panel } from "../ui/Panel";
import { useSettled } from "../ui/useSettled";
import { useStableSet } from "../ui/useStableSet";

/** Curves that are drawn at once: of more none can be followed. */
const MOST = 100;
const SETTLE_MS = 300;
const SETTINGS = { axis: "step", logarithmic: false, smoothing: 0 } as const;

interface Props {
  trials: readonly Job[];
  metric: string;
  colors: readonly string[];
  /** Trials from the worst to the best. */
  order: readonly number[];
  selected: readonly boolean[];
}

/** The metric of the selected trials over steps, in their colours. While a brush moves, lines are hidden at once. */
export function CurvesPanel({ trials, metric, colors, order, selected }: Props) {
  const reporting = order.toReversed().filter((at) => selected[at] && trials[at]?.latest[metric] !== undefined);
  const best = reporting.slice(0, MOST);
  const ids = useSettled(best.map((at) => trials[at]?.id ?? "").join(","), SETTLE_MS) ?? "";
  const runs = useMemo(() => (
    ids.split(",").flatMap((id) => {
      const at = trials.findIndex((trial) => trial.id === id);
      const job = trials[at];
      return job === undefined ? [] : [{ job, color: colors[at] ?? "" }];
    }).map((run, index) => ({ ...run, index }))
    // eslint-disable-next-line react-hooks/exhaustive-deps -- the chart is made anew for other runs only
  ), [ids]);
  const passing = new Set(best.map((at) => trials[at]?.id));
  const hidden = useStableSet(runs.filter(({ job }) => !passing.has(job.id)).map(({ index }) => index));
  const byId = new Map(trials.map((trial) => [trial.id, trial]));
  const version = runs.map(({ job: { id } }) => {
    const now = byId.get(id);
    return `${now?.version ?? 0}.${now?.progress?.step ?? 0}`;
  }).join(",");
  const [view] = useState(() => new View());
  const range = useSettledView(view);
  const tools = reporting.length > MOST && (
    <span className="faint"><Trans>the best {{ shown: MOST }} of {{ all: reporting.length }}</Trans></span>
  );
  return (
    <Panel title={t`Curves of the selected trials`} tools={tools}>
      {runs.length === 0
        ? <p className="soft pad"><Trans>No selected trial has reported {metric}.</Trans></p>
        : (
            <div className="sweep-curves">
              <RunsChart
                key={metric}
                name={metric}
                runs={runs}
                hidden={hidden}
                settings={SETTINGS}
                view={view}
                range={range}
                version={version}
              />
            </div>
          )}
    </Panel>
  );
}
