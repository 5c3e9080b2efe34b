import { t } from "@lingui/core/macro";

import { UNKNOWN } from "../lib/format";
import type { Counts } from "../lib/sections";
import { countsPerTab, type TabKey, TABS } from "../lib/states";

interface Props {
  /** Undefined while nobody knows. */
  counts: Counts | undefined;
  /** Null: the search asks for other states. */
  tab: TabKey | null;
  onChange: (tab: TabKey | null) => void;
}

/** States of jobs with counts. */
export function StateTabs({ counts, tab, onChange }: Props) {
  const perTab = counts && countsPerTab(counts.states, counts.more);
  return (
    <div className="state-tabs" role="group" aria-label={t`State`}>
      {TABS.map(({ key, label }) => (
        <button key={key} type="button" aria-pressed={key === tab} onClick={() => onChange(key === "all" ? null : key)}>
          {label} <span className="count">{perTab?.[key] ?? UNKNOWN}</span>
        </button>
      ))}
    </div>
  );
}
