import { t } from "@lingui/core/macro";
import { useState } from "react";

import { atFields } from "../api/client";
import { useEdit } from "../api/jobs";
import { mayAdminister, useSettings } from "../api/session";
import type { Job } from "../api/types";
import { editsBetween, textsOf } from "../lib/edits";
import { priorityLabel } from "../lib/priorities";
import { prioritiesOf } from "../lib/rights";
import { Dialog } from "../ui/Dialog";
import { Field } from "../ui/Field";
import { Notice } from "../ui/Notice";
import { Select } from "../ui/Select";

/** Changes what the service takes of a job that is not over. */
export function EditDialog({ job, onClose }: { job: Job; onClose: () => void }) {
  const [before] = useState(() => textsOf(job));
  const [texts, setTexts] = useState(before);
  const edit = useEdit();
  const allowed = prioritiesOf(mayAdminister(useSettings().data));
  const { fields, rest } = atFields(edit.error, ["name", "priority", "tags", "time_limit"]);
  const waits = job.state === "queued";
  const confirm = () => edit.mutate({ job, edits: editsBetween(before, texts) }, { onSuccess: onClose });
  return (
    <Dialog
      title={t`Edit job ${{ number: job.number }}`}
      confirm={t`Save`}
      busy={edit.isPending}
      onConfirm={confirm}
      onClose={onClose}
    >
      <Field
        label={t`Name`}
        required
        error={fields.name}
        value={texts.name}
        onChange={(name) => setTexts({ ...texts, name })}
      />
      <div className="field-pair">
        <Select
          label={t`Priority`}
          options={[...new Set([...allowed, before.priority])].map((key) => ({ key, label: priorityLabel(key) }))}
          error={fields.priority}
          value={texts.priority}
          onChange={(priority) => setTexts({ ...texts, priority })}
        />
        <Field
          label={t`Time limit`}
          hint={waits ? t`Such as 90m, 4h or 2d. Empty: none.` : t`Its node has it already: it changes only while a job waits.`}
          placeholder={t`none`}
          disabled={!waits}
          error={fields.time_limit}
          value={texts.timeLimit}
          onChange={(timeLimit) => setTexts({ ...texts, timeLimit })}
        />
      </div>
      <Field
        label={t`Tags`}
        hint={t`Words, with commas.`}
        error={fields.tags}
        value={texts.tags}
        onChange={(tags) => setTexts({ ...texts, tags })}
      />
      <Notice error={rest} />
    </Dialog>
  );
}
