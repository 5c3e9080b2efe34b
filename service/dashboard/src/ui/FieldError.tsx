import { sentence } from "../lib/format";
import { Coded } from "./Coded";

/** What is wrong with a field's value, told as soon as it is known. */
export function FieldError({ id, error }: { id: string; error: string | undefined }) {
  return <p id={id} role="alert" className="field-error" hidden={error === undefined}>{error && <Coded text={sentence(error)} />}</p>;
}

/** The ids of what describes a field, as `aria-describedby` takes them. */
export function described(...ids: (string | undefined)[]): string | undefined {
  return ids.filter(Boolean).join(" ") || undefined;
}
