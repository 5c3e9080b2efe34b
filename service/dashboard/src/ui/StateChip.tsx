import type { JobState } from "../lib/states";

/** A signal lamp with the state's name; a held job shows that instead of queued. */
export function StateChip({ state, held = false }: { state: JobState; held?: boolean }) {
  const name = held && state === "queued" ? "held" : state;
  return <span className="chip" data-state={state} data-held={held || undefined}><i aria-hidden="true" />{name}</span>;
}
