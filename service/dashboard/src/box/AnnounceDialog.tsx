import { useState } from "react";

import { useAnnounce } from "../api/notices";
import type { Notices } from "../api/types";
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
  const [until, setUntil] = useState("");
  const announce = useAnnounce();
  const confirm = () => announce.mutate(
    { message: message.trim(), until: until === "" ? null : new Date(until).toISOString() },
    { onSuccess: onClose },
  );
  return (
    <Dialog title="Tell everybody" confirm="Announce" busy={announce.isPending} onConfirm={confirm} onClose={onClose}>
      <Field
        label="Announcement"
        required
        maxLength={500}
        placeholder="maintenance at 18:00"
        value={message}
        onChange={setMessage}
      />
      <Field
        label="Until"
        type="datetime-local"
        value={until}
        onChange={setUntil}
        hint="Then it goes by itself; empty: once it is withdrawn."
      />
      <Notice error={announce.error} />
    </Dialog>
  );
}
