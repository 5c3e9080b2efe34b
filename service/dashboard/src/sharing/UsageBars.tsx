import type { UsageRow } from "../api/types";
import { hours } from "../lib/format";
import { useResource } from "../ui/useResource";

const PARTS = ["useful", "idle", "failed", "lost"] as const;
const WORDS = {
  useful: "work that counts",
  idle: "held, but not used",
  failed: "work of attempts that failed",
  lost: "work done again after a preemption or a loss",
};

/** Hours of each row as one bar in four parts, all on the same scale. */
export function UsageBars({ rows }: { rows: readonly UsageRow[] }) {
  const { one } = useResource();
  if (rows.length === 0) return <p className="soft">Nobody held a {one}.</p>;
  const most = Math.max(...rows.map((row) => row.total), 1e-9);
  const sorted = rows.toSorted((a, b) => b.total - a.total);
  return (
    <div>
      <ol className="usage-bars">
        {sorted.map((row) => (
          <li key={row.of}>
            <span className="usage-of">{row.of}</span>
            <div className="usage-bar" role="img" aria-label={told(row, one)} style={{ width: `${(row.total / most) * 100}%` }}>
              {PARTS.map((part) => row[part] > 0 && (
                <i key={part} data-part={part} style={{ flexGrow: row[part] / row.total }} title={`${hours(row[part])} h ${part}`} />
              ))}
            </div>
            <span className="usage-total num">{hours(row.total)} h</span>
          </li>
        ))}
      </ol>
      <ul className="usage-legend">
        {PARTS.map((part) => <li key={part}><i data-part={part} /><b>{part}</b> {WORDS[part]}</li>)}
      </ul>
    </div>
  );
}

function told(row: UsageRow, one: string): string {
  return PARTS.filter((part) => row[part] > 0).map((part) => `${hours(row[part])} ${one}-hours ${part}`).join(", ");
}
