import { type InputHTMLAttributes, useId } from "react";

import { described, FieldError } from "./FieldError";

interface Props extends Omit<InputHTMLAttributes<HTMLInputElement>, "onChange" | "value"> {
  label: string;
  hint?: string;
  /** What is wrong with its value. */
  error?: string | undefined;
  value: string;
  onChange: (text: string) => void;
}

/** A labelled input of a dialog. */
export function Field({ label, hint, error, value, onChange, ...input }: Props) {
  const [id, hintId, errorId] = [useId(), useId(), useId()];
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      <input
        id={id}
        value={value}
        spellCheck={false}
        autoComplete="off"
        aria-invalid={error !== undefined}
        aria-describedby={described(error && errorId, hint && hintId)}
        onChange={({ target }) => onChange(target.value)}
        {...input}
      />
      <FieldError id={errorId} error={error} />
      {hint !== undefined && <p id={hintId} className="faint">{hint}</p>}
    </div>
  );
}
