import { Command } from "./Command";

/** How a first node joins. */
export function NoNode() {
  return (
    <div className="empty">
      <h2>No node has joined</h2>
      <p className="soft">Start a worker on a machine with GPUs (or without: it offers CPU slots). An administrator invites it, and gets its command:</p>
      <Command text="yard nodes --invite NODE" />
    </div>
  );
}
