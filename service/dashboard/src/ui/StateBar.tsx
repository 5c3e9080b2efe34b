import type { JobState } from "../lib/states";

const ORDER: readonly JobState[] = [
  "succeeded", "running", "starting", "assigned", "stopping", "unreachable", "queued", "cancelled", "failed",
];

/** Jobs by state as one bar, each state as wide as it has jobs, with the counts in words. */
export function StateBar({ states }: { states: Readonly<Partial<Record<JobState, number>>> }) {
  const shown = ORDER.flatMap((state) => (states[state] ? [{ state, count: states[state] }] : []));
  const words = shown.map(({ state, count }) => `${count} ${state}`).join(", ");
  return (
    <div className="state-bar-cell">
      <div className="state-bar" role="img" aria-label={words}>
        {shown.map(({ state, count }) => <i key={state} data-state={state} style={{ flexGrow: count }} title={`${count} ${state}`} />)}
      </div>
      <ul className="state-counts" aria-hidden="true">
        {shown.map(({ state, count }) => <li key={state} data-state={state}><b>{count}</b> {state}</li>)}
      </ul>
    </div>
  );
}
