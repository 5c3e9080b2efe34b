import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";

import { useCalibration } from "../api/sharing";
import type { SourceCalibration } from "../api/types";
import { percent, sentence } from "../lib/format";
import { exactly } from "../lib/time";
import { Notice } from "../ui/Notice";
import { Panel } from "../ui/Panel";

const SOURCES: Record<string, string> = {
  progress: t`the job's own steps`,
  "progress-printed": t`steps that the job printed`,
  history: t`earlier jobs of the same user, project and work`,
  "history-user": t`earlier jobs of the user`,
  "history-project": t`earlier jobs of the project`,
  limit: t`the time limit`,
  outrun: t`jobs that ran longer than all like them`,
};
const POINTS = [
  { key: "p10", label: t`Ended by the 10 % time`, ideal: 0.1 },
  { key: "p50", label: t`by the 50 % time`, ideal: 0.5 },
  { key: "p90", label: t`by the 90 % time`, ideal: 0.9 },
] as const;

/** How well the forecasts held: of jobs that have ended, how many did so by the time that was forecast. */
export function Calibration() {
  const found = useCalibration();
  const sources = found.data?.sources ?? [];
  return (
    <Panel title={t`How well the forecasts hold`} className="table-panel">
      <Notice error={found.error} />
      {found.data !== undefined && sources.length === 0 && (
        <p className="soft pad"><Trans>No job has ended yet whose running time was forecast.</Trans></p>
      )}
      {sources.length > 0 && (
        <>
          <p className="soft pad">
            <Trans>
              How many of the jobs that ended did so by each time that had been forecast. The mark is where a perfect
              forecast would be.
            </Trans>
          </p>
          <table className="plain-table stacking calibration">
            <thead>
              <tr>
                <th scope="col"><Trans>Forecast from</Trans></th>
                <th scope="col" className="num"><Trans>Jobs</Trans></th>
                {POINTS.map(({ key, label }) => <th key={key} scope="col">{label}</th>)}
                <th scope="col" className="num"><Trans>Typical error</Trans></th>
              </tr>
            </thead>
            <tbody>{sources.map((one) => <Source key={one.source} source={one} />)}</tbody>
          </table>
        </>
      )}
    </Panel>
  );
}

function Source({ source }: { source: SourceCalibration }) {
  const since = exactly(source.since);
  return (
    <tr>
      <th scope="row">{sentence(SOURCES[source.source] ?? source.source)}</th>
      <td className="num" data-label={t`Jobs`} title={t`since ${since}`}>{source.n}</td>
      {POINTS.map(({ key, label, ideal }) => (
        <td key={key} data-label={label}><Point share={source[key]} ideal={ideal} /></td>
      ))}
      <td className="num" data-label={t`Typical error`}>{percent(source.median_relative_error)}</td>
    </tr>
  );
}

function Point({ share, ideal }: { share: number; ideal: number }) {
  const [found, perfect] = [percent(share), percent(ideal)];
  return (
    <div className="share">
      <div className="share-bar" role="img" aria-label={t`${found}, ideally ${perfect}`}>
        <div style={{ width: `${share * 100}%` }} />
        <i style={{ left: `${ideal * 100}%` }} />
      </div>
      <span>{found}</span>
    </div>
  );
}
