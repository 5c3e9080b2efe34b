import { t } from "@lingui/core/macro";
import { useState } from "react";

import { useCreateProject } from "../api/people";
import type { Project } from "../api/types";
import { READERS, SUBMITTERS } from "../lib/people";
import { Dialog } from "../ui/Dialog";
import { Field } from "../ui/Field";
import { Notice } from "../ui/Notice";
import { Select } from "../ui/Select";

const INSTALLATION = "installation";

export function NewProjectDialog({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState("");
  const [visibility, setVisibility] = useState<Project["visibility"] | typeof INSTALLATION>(INSTALLATION);
  const [submitters, setSubmitters] = useState<Project["submitters"]>("everyone");
  const create = useCreateProject();
  const confirm = () => create.mutate(
    { name: name.trim(), visibility: visibility === INSTALLATION ? null : visibility, submitters, restarts: true },
    { onSuccess: onClose },
  );
  return (
    <Dialog title={t`New project`} confirm={t`Create`} busy={create.isPending} onConfirm={confirm} onClose={onClose}>
      <Field label={t`Name`} required maxLength={63} value={name} onChange={setName} />
      <Select
        label={t`Its jobs are read by`}
        options={[{ key: INSTALLATION, label: t`as is usual here` }, ...READERS]}
        value={visibility}
        onChange={setVisibility}
        hint={t`Beside owners and administrators.`}
      />
      <Select label={t`Who submits to it`} options={SUBMITTERS} value={submitters} onChange={setSubmitters} />
      <Notice error={create.error} />
    </Dialog>
  );
}
