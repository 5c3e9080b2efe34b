import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";

import type { UsageRow } from "../api/types";
import { hours, list } from "../lib/format";
import { useResource } from "../ui/useResource";

const PARTS = ["useful", "idle", "failed", "lost"] as const;
type Part = (typeof PARTS)[number];
const NAMES: Record<Part, string> = {
  useful: t`useful`, idle: t`idle`, failed: t`failed`, lost: t({ message: "lost", context: "hours" }),
};
const WORDS: Record<Part, string> = {
  useful: t`work that counts`,
  idle: t`held, but not used`,
  failed: t`work of attempts that failed`,
  lost: t`work done again after a preemption or a loss`,
};

/** Hours of one part in words. */
export function hoursOf(value: number, part: Part): string {
  const [amount, name] = [hours(value), NAMES[part]];
  return t`${amount} h ${name}`;
}

/** Hours of each row as one bar in four parts, all on the same scale. */
export function UsageBars({ rows }: { rows: readonly UsageRow[] }) {
  const { one } = useResource();
  if (rows.length === 0) return <p className="soft"><Trans>Nobody held a {one}.</Trans></p>;
  const most = Math.max(...rows.map((row) => row.total), 1e-9);
  const sorted = rows.toSorted((a, b) => b.total - a.total);
  return (
    <div>
      <ol className="usage-bars">
        {sorted.map((row) => (
          <li key={row.of}>
            <span className="usage-of">{row.of}</span>
            <div className="usage-bar" role="img" aria-label={told(row, one)} style={{ width: `${(row.total / most) * 100}%` }}>
              {PARTS.filter((part) => row[part] > 0).map((part) => {
                const words = hoursOf(row[part], part);
                return <i key={part} data-part={part} style={{ flexGrow: row[part] / row.total }} title={words} />;
              })}
            </div>
            <span className="usage-total num">{hours(row.total)} h</span>
          </li>
        ))}
      </ol>
      <ul className="usage-legend">
        {PARTS.map((part) => <li key={part}><i data-part={part} /><b>{NAMES[part]}</b> {WORDS[part]}</li>)}
      </ul>
    </div>
  );
}

function told(row: UsageRow, one: string): string {
  return list(PARTS.filter((part) => row[part] > 0).map((part) => {
    const [amount, name] = [hours(row[part]), NAMES[part]];
    return t`${amount} ${one}-hours ${name}`;
  }));
}
