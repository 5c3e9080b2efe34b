import { useMemo } from "react";

import type { Job } from "../api/types";
import { percent } from "../lib/format";
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
    <Panel title="What matters">
      {found === null
        ? (
            <p className="soft pad">Not enough trials: importance needs {FEWEST} with a value of {metric}.</p>
          )
        : (
            <>
              <table className="plain-table importance">
                <thead>
                  <tr><th scope="col">Parameter</th><th scope="col">Explains alone</th><th scope="col">Larger values</th></tr>
                </thead>
                <tbody>
                  {found.map((one) => (
                    <tr key={one.name}>
                      <th scope="row">{one.name}</th>
                      <td>
                        <span className="importance-bar" data-chance={one.chance || undefined}>
                          <i style={{ width: `${one.share * 100}%` }} />
                        </span>
                        {percent(one.share)}{one.chance && <span className="faint"> may be chance</span>}
                      </td>
                      <td>{direction(one, metric)}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
              <details className="importance-how">
                <summary>How this is computed</summary>
                <p>
                  Trials are ranked by {metric}, last values, those without one left out. The share is how much of the
                  variance of these ranks lies between the parameter’s values (numbers in five groups of like size):
                  eta squared of Kruskal and Wallis’s test, (H − k + 1) / (n − k). “May be chance” is that test at 5 %.
                  A parameter that matters only together with another one shows little here.
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
  const words = `Spearman’s ρ ${correlation.toFixed(2).replace("-", "−")}`;
  if (chance || Math.abs(correlation) < 0.3) return words;
  return `${correlation > 0 ? "higher" : "lower"} ${metric} (${words})`;
}
