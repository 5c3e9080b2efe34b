import { UNKNOWN } from "../lib/format";
import { countsPerTab, type TabKey, TABS } from "../lib/states";

interface Props {
  /** Jobs per state, counted up to `most`; undefined while nobody knows. */
  counts: { states: Partial<Record<string, number>>; most: number } | undefined;
  /** Null: the search asks for other states. */
  tab: TabKey | null;
  onChange: (tab: TabKey | null) => void;
}

/** States of jobs with counts. */
export function StateTabs({ counts, tab, onChange }: Props) {
  const perTab = counts && countsPerTab(counts.states, counts.most);
  return (
    <div className="state-tabs" role="group" aria-label="State">
      {TABS.map(({ key, label }) => (
        <button key={key} type="button" aria-pressed={key === tab} onClick={() => onChange(key === "all" ? null : key)}>
          {label} <span className="count">{perTab?.[key] ?? UNKNOWN}</span>
        </button>
      ))}
    </div>
  );
}
