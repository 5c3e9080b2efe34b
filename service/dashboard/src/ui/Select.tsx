import { useId } from "react";

import { described, FieldError } from "./FieldError";

interface Props<Key extends string> {
  label: string;
  /** The label is for screen readers alone: a column says it. */
  bare?: boolean;
  hint?: string;
  /** What is wrong with its value. */
  error?: string | undefined;
  options: readonly { key: Key; label: string }[];
  value: Key;
  disabled?: boolean;
  onChange: (key: Key) => void;
}

/** One of several, in a labelled list. */
export function Select<Key extends string>(props: Props<Key>) {
  const { label, bare = false, hint, error, options, value, disabled, onChange } = props;
  const [id, hintId, errorId] = [useId(), useId(), useId()];
  return (
    <div className="field">
      {!bare && <label htmlFor={id}>{label}</label>}
      <select
        id={id}
        value={value}
        disabled={disabled}
        aria-label={bare ? label : undefined}
        aria-invalid={error !== undefined}
        aria-describedby={described(error && errorId, hint && hintId)}
        onChange={({ target }) => onChange(target.value as Key)}
      >
        {options.map((option) => <option key={option.key} value={option.key}>{option.label}</option>)}
      </select>
      <FieldError id={errorId} error={error} />
      {hint !== undefined && <p id={hintId} className="faint">{hint}</p>}
    </div>
  );
}
