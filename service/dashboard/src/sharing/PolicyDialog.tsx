import { useState } from "react";

import { useSetPolicy } from "../api/sharing";
import type { Policy } from "../api/types";
import { ORDERS, type SpanKey, SPANS, SWITCHES } from "../lib/policy";
import { setting } from "../lib/setting";
import { Dialog } from "../ui/Dialog";
import { Field } from "../ui/Field";
import { Notice } from "../ui/Notice";
import { Segments } from "../ui/Segments";

/** An administrator's hand on the policy. Spans are written as `90s`, `10m`, `4h` or `7d`. */
export function PolicyDialog({ policy, onClose }: { policy: Policy; onClose: () => void }) {
  const [chosen, setChosen] = useState(policy);
  const [texts, setTexts] = useState(
    () => Object.fromEntries(SPANS.map(({ key }) => [key, policy[key] == null ? "" : setting(policy[key])])) as
      Record<SpanKey, string>,
  );
  const save = useSetPolicy();
  const changed = { ...chosen, ...texts, time_slice: texts.time_slice || null };
  const confirm = () => save.mutate(changed, { onSuccess: onClose });
  return (
    <Dialog title="Policy" confirm="Save" busy={save.isPending} onConfirm={confirm} onClose={onClose}>
      <Segments label="Order" options={ORDERS} value={chosen.order} onChange={(order) => setChosen({ ...chosen, order })} />
      {SWITCHES.map(({ key, label, hint }) => (
        <label key={key} className="check">
          <input
            type="checkbox"
            checked={chosen[key]}
            onChange={({ target }) => setChosen({ ...chosen, [key]: target.checked })}
          />
          <span>{label} <span className="faint">{hint}</span></span>
        </label>
      ))}
      <div className="field-pair">
        {SPANS.map(({ key, label, hint }) => (
          <Field
            key={key}
            label={label}
            hint={hint}
            required={key !== "time_slice"}
            value={texts[key]}
            onChange={(text) => setTexts({ ...texts, [key]: text })}
          />
        ))}
      </div>
      <Notice error={save.error} />
    </Dialog>
  );
}
