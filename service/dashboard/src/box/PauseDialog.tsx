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
      title="Pause the queue?"
      confirm="Pause"
      busy={pause.isPending}
      onConfirm={() => pause.mutate(message.trim(), { onSuccess: onClose })}
      onClose={onClose}
    >
      <p>No job starts, and none is preempted, until it is resumed. Running jobs go on, and people may submit.</p>
      <Field
        label="Why"
        maxLength={500}
        placeholder="replacing a fan"
        value={message}
        onChange={setMessage}
        hint="Everybody reads it."
      />
      <Notice error={pause.error} />
    </Dialog>
  );
}
