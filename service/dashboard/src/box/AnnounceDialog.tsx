import { t } from "@lingui/core/macro";
import { useState } from "react";

import { useAnnounce } from "../api/notices";
import type { Notices } from "../api/types";
import { localInput } from "../lib/calendar";
import { Dialog } from "../ui/Dialog";
import { Field } from "../ui/Field";
import { Notice } from "../ui/Notice";

interface Props {
  /** What it takes the place of. */
  before: Notices["announcement"];
  onClose: () => void;
}

/** A line to everybody, on each page and in the terminal, in place of the one before. */
export function AnnounceDialog({ before, onClose }: Props) {
  const [message, setMessage] = useState(before?.message ?? "");
  const end = before?.until ?? null;
  const [begun] = useState(end === null ? "" : localInput(Date.parse(end)));
  const [until, setUntil] = useState(begun);
  const announce = useAnnounce();
  const confirm = () => announce.mutate(
    // What was left alone stays exact, to the second.
    { message: message.trim(), until: until === "" ? null : until === begun ? end : new Date(until).toISOString() },
    { onSuccess: onClose },
  );
  return (
    <Dialog title={t`Tell everybody`} confirm={t`Announce`} busy={announce.isPending} onConfirm={confirm} onClose={onClose}>
      <Field
        label={t`Announcement`}
        required
        maxLength={500}
        placeholder={t`maintenance at 18:00`}
        value={message}
        onChange={setMessage}
      />
      <Field
        label={t`Until`}
        type="datetime-local"
        value={until}
        onChange={setUntil}
        hint={t`Then it goes by itself; empty: once it is withdrawn.`}
      />
      <Notice error={announce.error} />
    </Dialog>
  );
}
