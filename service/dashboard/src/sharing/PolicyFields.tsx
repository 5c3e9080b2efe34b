import { t } from "@lingui/core/macro";

import { ORDERS, type PolicyDraft, SPANS, SWITCHES } from "../lib/policy";
import { Field } from "../ui/Field";
import { Segments } from "../ui/Segments";

interface Props {
  draft: PolicyDraft;
  onChange: (draft: PolicyDraft) => void;
}

/** Everything of a policy that can be chosen here. */
export function PolicyFields({ draft, onChange }: Props) {
  const { chosen, texts } = draft;
  return (
    <>
      <Segments
        label={t`Order`}
        options={ORDERS}
        value={chosen.order}
        onChange={(order) => onChange({ texts, chosen: { ...chosen, order } })}
      />
      {SWITCHES.map(({ key, label, hint }) => (
        <label key={key} className="check">
          <input
            type="checkbox"
            checked={chosen[key]}
            onChange={({ target }) => onChange({ texts, chosen: { ...chosen, [key]: target.checked } })}
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
            onChange={(text) => onChange({ chosen, texts: { ...texts, [key]: text } })}
          />
        ))}
      </div>
    </>
  );
}
