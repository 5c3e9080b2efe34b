import { t } from "@lingui/core/macro";
import { useState } from "react";

import { ApiError, atFields } from "../api/client";
import { useEdit } from "../api/jobs";
import { mayAdminister, useSettings } from "../api/session";
import type { Job } from "../api/types";
import { changedFields, editsBetween, type Texts, textsOf } from "../lib/edits";
import { priorityLabel } from "../lib/priorities";
import { prioritiesOf } from "../lib/rights";
import { STATE_LABELS } from "../lib/states";
import { Dialog } from "../ui/Dialog";
import { Field } from "../ui/Field";
import { Notice } from "../ui/Notice";
import { Select } from "../ui/Select";

const CHANGED_MEANWHILE = 412;

/** Changes what the service takes of a job that is not over, as it was when the dialog was opened. */
export function EditDialog({ job, onClose }: { job: Job; onClose: () => void }) {
  const [opened, setOpened] = useState(job);
  const [typed, setTyped] = useState<Partial<Texts>>({});
  const edit = useEdit();
  const allowed = prioritiesOf(mayAdminister(useSettings().data));
  const isStale = edit.error instanceof ApiError && edit.error.status === CHANGED_MEANWHILE;
  const { fields, rest } = atFields(isStale ? null : edit.error, ["name", "priority", "tags", "time_limit"]);
  // What others have changed is told once, and saved upon if the person saves again.
  const base = isStale ? job : opened;
  const before = textsOf(base);
  const waits = base.state === "queued";
  const texts = { ...before, ...typed, ...(!waits && { timeLimit: before.timeLimit }) };
  const setTexts = (changed: Partial<Texts>) => setTyped({ ...typed, ...changed });
  const confirm = () => {
    setOpened(base);
    edit.mutate({ job: base, edits: editsBetween(before, texts) }, { onSuccess: onClose });
  };
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
        onChange={(name) => setTexts({ name })}
      />
      <div className="field-pair">
        <Select
          label={t`Priority`}
          options={[...new Set([...allowed, before.priority])].map((key) => ({ key, label: priorityLabel(key) }))}
          error={fields.priority}
          value={texts.priority}
          onChange={(priority) => setTexts({ priority })}
        />
        <Field
          label={t`Time limit`}
          hint={waits ? t`Such as 90m, 4h or 2d. Empty: none.` : t`Its node has it already: it changes only while a job waits.`}
          placeholder={t`none`}
          disabled={!waits}
          error={fields.time_limit}
          value={texts.timeLimit}
          onChange={(timeLimit) => setTexts({ timeLimit })}
        />
      </div>
      <Field
        label={t`Tags`}
        hint={t`Words, with commas.`}
        error={fields.tags}
        value={texts.tags}
        onChange={(tags) => setTexts({ tags })}
      />
      <Notice error={rest} />
      {isStale && <p className="notice" role="alert">{changedWords(opened, job)}</p>}
    </Dialog>
  );
}

/** What has become of a job since the dialog was opened. */
function changedWords(opened: Job, job: Job): string {
  const told = changedFields(opened, job).map((field) => fieldWords(field, job));
  return told.length === 0
    ? t`The job has changed since you opened this. Save again to change it all the same.`
    : t`The job has changed since you opened this: ${{ changes: told.join(t`; `) }}. What you changed is still here: save again to keep it.`;
}

function fieldWords(field: ReturnType<typeof changedFields>[number], job: Job): string {
  const { name, priority, tags, timeLimit } = textsOf(job);
  switch (field) {
    case "state": return t`it is ${{ state: STATE_LABELS[job.state] }} now`;
    case "name": return t`its name is ${name} now`;
    case "priority": return t`its priority is ${{ priority: priorityLabel(priority) }} now`;
    case "tags": return tags === "" ? t`it has no tags now` : t`its tags are ${tags} now`;
    case "timeLimit": return timeLimit === "" ? t`it has no time limit now` : t`its time limit is ${timeLimit} now`;
  }
}
