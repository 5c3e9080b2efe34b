import { useCalibration } from "../api/sharing";
import type { SourceCalibration } from "../api/types";
import { percent, sentence } from "../lib/format";
import { exactly } from "../lib/time";
import { Notice } from "../ui/Notice";
import { Panel } from "../ui/Panel";

const SOURCES: Record<string, string> = {
  progress: "the job's own steps",
  history: "earlier jobs of the same user, project and work",
  "history-user": "earlier jobs of the user",
  "history-project": "earlier jobs of the project",
  limit: "the time limit",
  outrun: "jobs that ran longer than all like them",
};
const POINTS = [
  { key: "p10", label: "Ended by the 10 % time", ideal: 0.1 },
  { key: "p50", label: "by the 50 % time", ideal: 0.5 },
  { key: "p90", label: "by the 90 % time", ideal: 0.9 },
] as const;

/** How well the forecasts held: of jobs that have ended, how many did so by the time that was forecast. */
export function Calibration() {
  const found = useCalibration();
  const sources = found.data?.sources ?? [];
  return (
    <Panel title="How well the forecasts hold" className="table-panel">
      <Notice error={found.error} />
      {found.data !== undefined && sources.length === 0 && (
        <p className="soft pad">No job has ended yet whose running time was forecast.</p>
      )}
      {sources.length > 0 && (
        <>
          <p className="soft pad">
            How many of the jobs that ended did so by each time that had been forecast. The mark is where a perfect
            forecast would be.
          </p>
          <table className="plain-table stacking calibration">
            <thead>
              <tr>
                <th scope="col">Forecast from</th>
                <th scope="col" className="num">Jobs</th>
                {POINTS.map(({ key, label }) => <th key={key} scope="col">{label}</th>)}
                <th scope="col" className="num">Typical error</th>
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
  return (
    <tr>
      <th scope="row">{sentence(SOURCES[source.source] ?? source.source)}</th>
      <td className="num" data-label="Jobs" title={`since ${exactly(source.since)}`}>{source.n}</td>
      {POINTS.map(({ key, label, ideal }) => (
        <td key={key} data-label={label}>
          <div className="share">
            <div className="share-bar" role="img" aria-label={`${percent(source[key])}, ideally ${percent(ideal)}`}>
              <div style={{ width: `${source[key] * 100}%` }} />
              <i style={{ left: `${ideal * 100}%` }} />
            </div>
            <span>{percent(source[key])}</span>
          </div>
        </td>
      ))}
      <td className="num" data-label="Typical error">{percent(source.median_relative_error)}</td>
    </tr>
  );
}
