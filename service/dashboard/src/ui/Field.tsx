import { type InputHTMLAttributes, useId } from "react";

interface Props extends Omit<InputHTMLAttributes<HTMLInputElement>, "onChange" | "value"> {
  label: string;
  hint?: string;
  value: string;
  onChange: (text: string) => void;
}

/** A labelled input of a dialog. */
export function Field({ label, hint, value, onChange, ...input }: Props) {
  const [id, hintId] = [useId(), useId()];
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      <input
        id={id}
        value={value}
        spellCheck={false}
        autoComplete="off"
        aria-describedby={hint === undefined ? undefined : hintId}
        onChange={({ target }) => onChange(target.value)}
        {...input}
      />
      {hint !== undefined && <p id={hintId} className="faint">{hint}</p>}
    </div>
  );
}
