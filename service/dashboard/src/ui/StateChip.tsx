import { BLOCKED, HELD, type JobState, STATE_LABELS } from "../lib/states";

interface Props {
  state: JobState;
  held?: boolean;
  blocked?: boolean;
}

/** A signal lamp with the state's name; a queued job that is held or waits for others shows that. */
export function StateChip({ state, held = false, blocked = false }: Props) {
  const name = state !== "queued" ? STATE_LABELS[state] : held ? HELD : blocked ? BLOCKED : STATE_LABELS.queued;
  return <span className="chip" data-state={state} data-held={held || blocked || undefined}><i aria-hidden="true" />{name}</span>;
}
