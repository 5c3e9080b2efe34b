import { list } from "../lib/format";
import { type JobState, STATE_LABELS } from "../lib/states";

const ORDER: readonly JobState[] = [
  "succeeded", "running", "starting", "assigned", "stopping", "unreachable", "queued", "cancelled", "failed",
];

/** Jobs by state as one bar, each state as wide as it has jobs, with the counts in words. */
export function StateBar({ states }: { states: Readonly<Partial<Record<JobState, number>>> }) {
  const shown = ORDER.flatMap((state) => (states[state] ? [{ state, count: states[state] }] : []));
  const told = shown.map(({ state, count }) => ({ state, count, words: `${count} ${STATE_LABELS[state]}` }));
  return (
    <div className="state-bar-cell">
      <div className="state-bar" role="img" aria-label={list(told.map(({ words }) => words))}>
        {told.map(({ state, count, words }) => (
          <i key={state} data-state={state} style={{ flexGrow: count }} title={words} />
        ))}
      </div>
      <ul className="state-counts" aria-hidden="true">
        {shown.map(({ state, count }) => <li key={state} data-state={state}><b>{count}</b> {STATE_LABELS[state]}</li>)}
      </ul>
    </div>
  );
}
