import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useMemo } from "react";

import type { Job } from "../api/types";
import { fixed, percent } from "../lib/format";
import { FEWEST, type Importance, importance } from "../lib/importance";
import { Panel } from "../ui/Panel";

interface Props {
  trials: readonly Job[];
  names: readonly string[];
  metric: string;
}

/** How much each parameter alone tells of the metric, and how that was found. */
export function ImportancePanel({ trials, names, metric }: Props) {
  const found = useMemo(() => importance(trials, names, metric), [trials, names, metric]);
  return (
    <Panel title={t`What matters`}>
      {found === null
        ? (
            <p className="soft pad">
              <Trans>Not enough trials: importance needs {{ fewest: FEWEST }} with a value of {metric}.</Trans>
            </p>
          )
        : (
            <>
              <table className="plain-table importance">
                <thead>
                  <tr>
                    <th scope="col"><Trans>Parameter</Trans></th>
                    <th scope="col"><Trans>Explains alone</Trans></th>
                    <th scope="col"><Trans>Larger values</Trans></th>
                  </tr>
                </thead>
                <tbody>
                  {found.map((one) => (
                    <tr key={one.name}>
                      <th scope="row">{one.name}</th>
                      <td>
                        <span className="importance-bar" data-chance={one.chance || undefined}>
                          <i style={{ width: `${one.share * 100}%` }} />
                        </span>
                        {percent(one.share)}{one.chance && <span className="faint"> <Trans>may be chance</Trans></span>}
                      </td>
                      <td>{direction(one, metric)}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
              <details className="importance-how">
                <summary><Trans>How this is computed</Trans></summary>
                <p>
                  <Trans>
                    Trials are ranked by {metric}, last values, those without one left out. The share is how much of
                    the variance of these ranks lies between the parameter’s values (numbers in five groups of like
                    size): eta squared of Kruskal and Wallis’s test, (H − k + 1) / (n − k). “May be chance” is that
                    test at 5 %. A parameter that matters only together with another one shows little here.
                  </Trans>
                </p>
              </details>
            </>
          )}
    </Panel>
  );
}

/** What larger values of the parameter go with. */
function direction({ correlation, chance }: Importance, metric: string): string {
  if (correlation === null) return "–";
  const rho = fixed(correlation, 2).replace("-", "−");
  if (chance || Math.abs(correlation) < 0.3) return t`Spearman’s ρ ${rho}`;
  return correlation > 0 ? t`higher ${metric} (Spearman’s ρ ${rho})` : t`lower ${metric} (Spearman’s ρ ${rho})`;
}
