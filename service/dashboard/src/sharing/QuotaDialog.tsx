import { t } from "@lingui/core/macro";
import { useState } from "react";

import { useSetQuota } from "../api/sharing";
import type { Quota, QuotaValues } from "../api/types";
import type { Resource } from "../lib/resources";
import { optional, sizeSetting } from "../lib/setting";
import { Dialog } from "../ui/Dialog";
import { Field } from "../ui/Field";
import { Notice } from "../ui/Notice";
import { useResource } from "../ui/useResource";

const KEYS = ["weight", "max_gpus", "max_gpu_hours", "max_queued", "max_storage"] as const satisfies (keyof QuotaValues)[];

type Texts = Record<(typeof KEYS)[number], string>;

const HINTS: Partial<Texts> = {
  weight: t`Its share of a full box, compared with the others'; without one, 1.`,
  max_storage: t`Of checkpoints, files, logs and code, such as 500GiB or 2TiB.`,
};

const labelsOf = ({ one, many }: Resource): Texts => ({
  weight: t`Weight`,
  max_gpus: t`${many} at once`,
  max_gpu_hours: t`${one}-hours in any 7 days`,
  max_queued: t`Waiting jobs`,
  max_storage: t`Storage`,
});

/** An administrator's hand on one quota; an empty field takes the value away, so that everybody's default counts. */
export function QuotaDialog({ quota, onClose }: { quota: Quota; onClose: () => void }) {
  const { kind, name, own, effective } = quota;
  const [begun] = useState(() => Object.fromEntries(KEYS.map((key) => [key, written(key, own[key])])) as Texts);
  const [texts, setTexts] = useState(begun);
  const save = useSetQuota();
  const labels = labelsOf(useResource());
  const confirm = () => {
    const changed = KEYS.filter((key) => texts[key] !== begun[key]);
    const values = Object.fromEntries(changed.map((key) => [
      key, key === "max_storage" ? texts[key].trim() || null : optional(texts[key]),
    ])) as QuotaValues;
    save.mutate({ kind, name, values }, { onSuccess: onClose });
  };
  return (
    <Dialog
      title={titleOf(kind, name)}
      confirm={t`Save`}
      busy={save.isPending}
      onConfirm={confirm}
      onClose={onClose}
    >
      {KEYS.map((key) => (
        <Field
          key={key}
          label={labels[key]}
          type={key === "max_storage" ? "text" : "number"}
          min={0}
          step={key === "max_gpus" || key === "max_queued" ? 1 : "any"}
          placeholder={key === "weight" ? "1" : standing(own[key], written(key, effective[key]))}
          value={texts[key]}
          onChange={(text) => setTexts({ ...texts, [key]: text })}
          {...(HINTS[key] !== undefined && { hint: HINTS[key] })}
        />
      ))}
      <Notice error={save.error} />
    </Dialog>
  );
}

function titleOf(kind: Quota["kind"], name: string): string {
  if (name === "*") return kind === "user" ? t`Default quotas of users` : t`Default quotas of projects`;
  return kind === "user" ? t`Quotas of user ${name}` : t`Quotas of project ${name}`;
}

/** What counts while a field is empty. */
function standing(own: number | string | null | undefined, usual: string): string {
  return own == null && usual !== "" ? t`${usual} (default)` : t`no limit`;
}

function written(key: keyof Texts, value: number | string | null | undefined): string {
  if (value == null) return "";
  return key === "max_storage" ? sizeSetting(value) : String(value);
}
