import { Command } from "./Command";

/** How a first node joins. */
export function NoNode() {
  return (
    <div className="empty">
      <h2>No node has joined</h2>
      <p className="soft">Start a worker on a machine with GPUs (or without: it offers CPU slots):</p>
      <Command text={`yard worker --join ${location.origin}`} />
    </div>
  );
}
