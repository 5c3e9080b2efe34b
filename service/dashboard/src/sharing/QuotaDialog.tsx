import { useState } from "react";

import { useSetQuota } from "../api/sharing";
import type { Quota, QuotaValues } from "../api/types";
import { optional, sizeSetting } from "../lib/setting";
import { Dialog } from "../ui/Dialog";
import { Field } from "../ui/Field";
import { Notice } from "../ui/Notice";
import { useResource } from "../ui/useResource";

const FIELDS = [
  { key: "weight", label: "Weight", hint: "Its share of a full box, compared with the others'; without one, 1." },
  { key: "max_gpus", label: "{many} at once", hint: "" },
  { key: "max_gpu_hours", label: "{one}-hours in any 7 days", hint: "" },
  { key: "max_queued", label: "Waiting jobs", hint: "" },
  { key: "max_storage", label: "Storage", hint: "Of checkpoints, files, logs and code, such as 500GiB or 2TiB." },
] as const satisfies readonly { key: keyof QuotaValues; label: string; hint: string }[];

type Texts = Record<(typeof FIELDS)[number]["key"], string>;

/** An administrator's hand on one quota; an empty field takes the value away, so that everybody's default counts. */
export function QuotaDialog({ quota, onClose }: { quota: Quota; onClose: () => void }) {
  const { kind, name, own, effective } = quota;
  const [texts, setTexts] = useState(
    () => Object.fromEntries(FIELDS.map(({ key }) => [key, written(key, own[key])])) as Texts,
  );
  const save = useSetQuota();
  const resource = useResource();
  const confirm = () => {
    const values = Object.fromEntries(FIELDS.map(({ key }) => [
      key, key === "max_storage" ? texts[key].trim() || null : optional(texts[key]),
    ])) as QuotaValues;
    save.mutate({ kind, name, values }, { onSuccess: onClose });
  };
  return (
    <Dialog
      title={name === "*" ? `Default quotas of ${kind}s` : `Quotas of ${kind} ${name}`}
      confirm="Save"
      busy={save.isPending}
      onConfirm={confirm}
      onClose={onClose}
    >
      {FIELDS.map(({ key, label, hint }) => (
        <Field
          key={key}
          label={label.replace("{one}", resource.one).replace("{many}", resource.many)}
          type={key === "max_storage" ? "text" : "number"}
          min={0}
          step={key === "max_gpus" || key === "max_queued" ? 1 : "any"}
          placeholder={own[key] == null && effective[key] != null ? `${written(key, effective[key])} (default)` : "no limit"}
          value={texts[key]}
          onChange={(text) => setTexts({ ...texts, [key]: text })}
          {...(hint !== "" && { hint })}
          {...(key === "weight" && { placeholder: "1" })}
        />
      ))}
      <Notice error={save.error} />
    </Dialog>
  );
}

function written(key: keyof Texts, value: number | string | null | undefined): string {
  if (value == null) return "";
  return key === "max_storage" ? sizeSetting(value) : String(value);
}
