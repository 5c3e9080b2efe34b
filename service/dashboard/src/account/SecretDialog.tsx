import { t } from "@lingui/core/macro";
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
      title={titleOf(name, project)}
      confirm={name === null ? t`Set it` : t`Replace`}
      busy={save.isPending}
      onConfirm={() => save.mutate({ ...texts, project }, { onSuccess: onClose })}
      onClose={onClose}
    >
      {name === null && (
        <Field
          label={t`Name`}
          required
          placeholder="WANDB_API_KEY"
          value={texts.name}
          onChange={(text) => setTexts({ ...texts, name: text.trim() })}
        />
      )}
      <Field
        label={t`Value`}
        type="password"
        autoComplete="new-password"
        required
        value={texts.value}
        onChange={(value) => setTexts({ ...texts, value })}
        hint={t`One line. Longer ones: yard secrets set NAME < file`}
      />
      <Notice error={save.error} />
    </Dialog>
  );
}

function titleOf(name: string | null, project: string | null): string {
  if (name !== null) return t`Replace ${name}`;
  return project === null ? t`New secret` : t`New secret of ${project}`;
}
