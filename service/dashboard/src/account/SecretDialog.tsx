import { useState } from "react";

import { useSetSecret } from "../api/people";
import { Dialog } from "../ui/Dialog";
import { Field } from "../ui/Field";
import { Notice } from "../ui/Notice";

interface Props {
  /** The secret whose value is replaced; null: a new one. */
  name: string | null;
  project: string | null;
  onClose: () => void;
}

/** Takes a value that nobody sees again; it is gone from the page with the dialog. */
export function SecretDialog({ name, project, onClose }: Props) {
  const [texts, setTexts] = useState({ name: name ?? "", value: "" });
  const save = useSetSecret();
  return (
    <Dialog
      title={name === null ? `New secret${project === null ? "" : ` of ${project}`}` : `Replace ${name}`}
      confirm={name === null ? "Set it" : "Replace"}
      busy={save.isPending}
      onConfirm={() => save.mutate({ ...texts, project }, { onSuccess: onClose })}
      onClose={onClose}
    >
      {name === null && (
        <Field
          label="Name"
          required
          placeholder="WANDB_API_KEY"
          value={texts.name}
          onChange={(text) => setTexts({ ...texts, name: text.trim() })}
        />
      )}
      <Field
        label="Value"
        type="password"
        autoComplete="new-password"
        required
        value={texts.value}
        onChange={(value) => setTexts({ ...texts, value })}
        hint="One line. Longer ones: yard secrets set NAME < file"
      />
      <Notice error={save.error} />
    </Dialog>
  );
}
