import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useState } from "react";

import { useDrain } from "../api/box";
import { Dialog } from "../ui/Dialog";
import { Field } from "../ui/Field";
import { Notice } from "../ui/Notice";
import { Segments } from "../ui/Segments";

const RUNNING = [{ key: "on", label: t`Go on` }, { key: "stop", label: t`Save and wait elsewhere` }] as const;

/** Asks why a node takes no new jobs, and what becomes of those that run there. */
export function DrainDialog({ node, onClose }: { node: string; onClose: () => void }) {
  const [message, setMessage] = useState("");
  const [running, setRunning] = useState<"on" | "stop">("on");
  const drain = useDrain();
  return (
    <Dialog
      title={t`Drain ${node}?`}
      confirm={t`Drain`}
      busy={drain.isPending}
      onConfirm={() => drain.mutate(
        { name: node, message: message.trim(), stopJobs: running === "stop" },
        { onSuccess: onClose },
      )}
      onClose={onClose}
    >
      <p>
        <Trans>
          No new job starts here until it is resumed. For a set time, reserve a maintenance on the page Sharing.
        </Trans>
      </p>
      <Field
        label={t`Why`}
        maxLength={500}
        placeholder={t`new fan, back at 18:00`}
        value={message}
        onChange={setMessage}
        hint={t`Whoever waits for this node reads it.`}
      />
      <div className="field">
        <p><Trans>Jobs that run here</Trans></p>
        <Segments label={t`Jobs that run here`} options={RUNNING} value={running} onChange={setRunning} />
      </div>
      <Notice error={drain.error} />
    </Dialog>
  );
}
