import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useState } from "react";

import { usePause } from "../api/notices";
import { Dialog } from "../ui/Dialog";
import { Field } from "../ui/Field";
import { Notice } from "../ui/Notice";

export function PauseDialog({ onClose }: { onClose: () => void }) {
  const [message, setMessage] = useState("");
  const pause = usePause();
  return (
    <Dialog
      title={t`Pause the queue?`}
      confirm={t`Pause`}
      busy={pause.isPending}
      onConfirm={() => pause.mutate(message.trim(), { onSuccess: onClose })}
      onClose={onClose}
    >
      <p>
        <Trans>
          No job starts, and none is preempted, until it is resumed. Running jobs go on, and people may submit.
        </Trans>
      </p>
      <Field
        label={t`Why`}
        maxLength={500}
        placeholder={t`replacing a fan`}
        value={message}
        onChange={setMessage}
        hint={t`Everybody reads it.`}
      />
      <Notice error={pause.error} />
    </Dialog>
  );
}
