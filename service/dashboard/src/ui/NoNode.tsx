import { Trans } from "@lingui/react/macro";

import { Command } from "./Command";

/** How a first node joins. */
export function NoNode() {
  return (
    <div className="empty">
      <h2><Trans>No node has joined</Trans></h2>
      <p className="soft">
        <Trans>
          Start a worker on a machine with GPUs (or without: it offers CPU slots). An administrator invites it, and
          gets its command:
        </Trans>
      </p>
      <Command text="yard nodes --invite NODE" />
    </div>
  );
}
