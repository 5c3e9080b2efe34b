import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useId, useState } from "react";

import type { FormField, Path } from "../lib/schema";
import { type Complaint, complaintsOf } from "../lib/specForm";
import { isObject, shown, type Spec, typed, valueAt } from "../lib/specText";

export interface FieldProps {
  field: FormField;
  spec: Spec;
  complaints: readonly Complaint[];
  /** Values that are known, by path. */
  known: Readonly<Record<string, readonly string[]>>;
  onChange: (path: Path, value: unknown) => void;
}

/** Where a field stands on the page. */
export const idOf = (path: Path) => `field-${path.join("-")}`;

/** One field of a spec, or a group of them. */
export function SpecField(props: FieldProps) {
  const { field } = props;
  if (field.kind === "group") {
    return (
      <fieldset className="spec-fields" id={idOf(field.path)} tabIndex={-1}>
        <legend>{field.label}</legend>
        <Help text={field.help} />
        <Complaints some={complaintsOf(field, props.complaints)} />
        {field.fields.map((each) => <SpecField key={each.path.join(".")} {...props} field={each} />)}
      </fieldset>
    );
  }
  if (field.kind === "variant") return <VariantField {...props} field={field} />;
  return field.kind === "choice" ? <Choice {...props} field={field} /> : <Input {...props} />;
}

/** An object of one of several kinds: its kind, and below it the fields of that. */
function VariantField(props: FieldProps & { field: FormField & { kind: "variant" } }) {
  const { field, spec, onChange } = props;
  const value = valueAt(spec, field.path);
  const name = typeof value === "string" ? value : isObject(value) ? String(value.name) : "";
  const choose = (next: string) => onChange(field.path, next === "" ? undefined : { name: next });
  const chosen = field.variants.find((one) => one.name === name);
  return (
    <div className="spec-variant">
      <Labelled {...props}>
        {(input) => (
          <select {...input} value={name} onChange={({ target }) => choose(target.value)}>
            <option value=""><Trans>as usual</Trans></option>
            {field.variants.map((one) => <option key={one.name} value={one.name}>{one.name}</option>)}
          </select>
        )}
      </Labelled>
      {chosen !== undefined && chosen.fields.length > 0 && (
        <fieldset className="spec-fields">
          <legend>{field.label}: {chosen.name}</legend>
          <Help text={chosen.help} />
          {chosen.fields.map((each) => <SpecField key={each.path.join(".")} {...props} field={each} />)}
        </fieldset>
      )}
    </div>
  );
}

function Choice(props: FieldProps & { field: FormField & { kind: "choice" } }) {
  const { field, spec, onChange } = props;
  const value = valueAt(spec, field.path);
  const choose = (next: string) => onChange(field.path, next === "" ? undefined : field.options[Number(next)]);
  const at = field.options.findIndex((one) => one === value);
  const nameOf = (one: unknown) => optionOf(one, field.meanings);
  return (
    <Labelled {...props}>
      {(input) => (
        <select
          {...input}
          value={at < 0 ? "" : String(at)}
          onChange={({ target }) => choose(target.value)}
        >
          <option value="">{field.without === null ? t`not set` : usually(nameOf(field.without))}</option>
          {field.options.map((one, index) => <option key={index} value={index}>{nameOf(one)}</option>)}
        </select>
      )}
    </Labelled>
  );
}

/** A value that may be chosen, as YAML has it, and what it means. */
function optionOf(value: unknown, meanings: Readonly<Record<string, string>> = {}): string {
  const text = String(value);
  const meaning = meanings[text];
  if (text === "true") return t`yes`;
  if (text === "false") return t`no`;
  return meaning === undefined ? text : `${text} · ${meaning}`;
}

const usually = (value: string) => t`${value} (as usual)`;

/** A field that is typed; while it is, what stands in it stays as it was typed. */
function Input(props: FieldProps) {
  const { field: { kind, path, without, unit }, spec, known, onChange } = props;
  const [draft, setDraft] = useState<string | null>(null);
  const [fault, setFault] = useState<string | null>(null);
  const list = useId();
  const names = known[path.join(".")];
  const change = (text: string) => {
    setDraft(text);
    try {
      onChange(path, typed(kind, text));
      setFault(null);
    } catch (error) {
      setFault(error instanceof Error ? error.message : String(error));
    }
  };
  const common = {
    value: draft ?? shown(kind, valueAt(spec, path), unit),
    spellCheck: false,
    autoComplete: "off",
    placeholder: without ?? undefined,
    onChange: ({ target }: { target: { value: string } }) => change(target.value),
    onBlur: () => fault === null && setDraft(null),
  };
  return (
    <Labelled {...props} fault={fault}>
      {(input) => (kind === "line" || kind === "text"
        ? (
            <>
              <input {...input} {...common} list={names === undefined ? undefined : list} />
              <datalist id={list}>{names?.map((one) => <option key={one} value={one} />)}</datalist>
            </>
          )
        : <textarea {...input} {...common} rows={kind === "words" ? 2 : 3} />)}
    </Labelled>
  );
}

interface InputProps {
  id: string;
  "aria-invalid": boolean;
  "aria-describedby": string;
}

interface LabelledProps extends FieldProps {
  /** What is wrong with what is typed. */
  fault?: string | null;
  children: (input: InputProps) => React.ReactNode;
}

function Labelled({ field, complaints, fault = null, children }: LabelledProps) {
  const about = useId();
  const some = complaintsOf(field, complaints);
  const all = fault === null ? some : [{ field: "", message: fault }];
  return (
    <div className="field">
      <label htmlFor={idOf(field.path)}>{field.label}</label>
      {children({ id: idOf(field.path), "aria-invalid": all.length > 0, "aria-describedby": about })}
      <div id={about}>
        <Complaints some={all} />
        <Help text={[field.help, HINTS[field.kind] ?? ""].filter((text) => text !== "").join(" ")} />
      </div>
    </div>
  );
}

const HINTS: Partial<Record<FormField["kind"], string>> = {
  list: t`One a line.`, variables: t`NAME=VALUE, one a line.`, yaml: t`In YAML.`,
};

function Complaints({ some }: { some: readonly Complaint[] }) {
  return some.map(({ field, message }) => <p key={`${field} ${message}`} className="complaint">{message}</p>);
}

/** A description, with what stands between backticks as code. */
export function Help({ text }: { text: string }) {
  if (text === "") return null;
  return (
    <p className="faint">
      {text.split("`").map((part, at) => (at % 2 === 1 ? <code key={at}>{part}</code> : part))}
    </p>
  );
}
