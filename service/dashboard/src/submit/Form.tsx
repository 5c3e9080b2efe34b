import { plural, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useRef } from "react";

import { allFields, type Complaint, type FormGroup, type SpecForm } from "../lib/specForm";
import type { FormField, Path } from "../lib/schema";
import { type Spec, valueAt } from "../lib/specText";
import { Segments } from "../ui/Segments";
import { type FieldProps, SpecField } from "./SpecField";

const WORK = [{ key: "command", label: t`A command` }, { key: "recipe", label: t`The built-in trainer` }] as const;
type Work = (typeof WORK)[number]["key"];

interface Props {
  form: SpecForm;
  spec: Spec;
  complaints: readonly Complaint[];
  projects: readonly string[];
  onChange: (path: Path, value: unknown) => void;
  onWork: (kind: Work, before: unknown) => void;
}

/** The fields of a spec: those that most jobs set, and the others folded, by what they are about. */
export function Form({ form, spec, complaints, projects, onChange, onWork }: Props) {
  const props = { spec, complaints, known: { project: projects }, onChange };
  const work: Work = "recipe" in spec ? "recipe" : "command";
  const left = useRef<Partial<Record<Work, unknown>>>({});
  const [name, ...rest] = form.common;
  return (
    <>
      {name !== undefined && <SpecField field={name} {...props} />}
      <div>
        <Segments
          label={t`What is run`}
          options={WORK}
          value={work}
          onChange={(next) => {
            if (next === work) return;
            left.current[work] = spec[work];
            onWork(next, left.current[next]);
          }}
        />
      </div>
      <SpecField key={work} field={form[work]} {...props} />
      {work === "recipe" && <Group group={form.moreRecipe} {...props} />}
      <Fields fields={[...form.resources, ...rest]} {...props} pairs />
      {form.groups.map((group) => <Group key={group.title} group={group} {...props} />)}
      <Elsewhere fields={allFields(form)} complaints={complaints} />
    </>
  );
}

type Shared = Omit<FieldProps, "field">;

function Fields({ fields, pairs, ...props }: Shared & { fields: readonly FormField[]; pairs?: boolean }) {
  return (
    <div className={pairs === true ? "spec-pairs" : "spec-list"}>
      {fields.map((field) => <SpecField key={field.path.join(".")} field={field} {...props} />)}
    </div>
  );
}

/** Fields that are folded away, with how many of them are set and how many are wrong. */
function Group({ group, ...props }: Shared & { group: FormGroup }) {
  const set = group.fields.filter(({ path }) => valueAt(props.spec, path) !== undefined).length;
  const wrong = props.complaints.filter((one) => group.fields.some((field) => isWithin(one.field, field.path))).length;
  return (
    <details className="spec-group">
      <summary>
        {group.title}
        {set > 0 && <span className="count"><Trans>{set} set</Trans></span>}
        {wrong > 0 && <span className="complaint">{plural(wrong, { one: "# problem", other: "# problems" })}</span>}
      </summary>
      <Fields fields={group.fields} {...props} />
    </details>
  );
}

function isWithin(field: string, path: Path): boolean {
  const own = path.join(".");
  return field === own || field.startsWith(`${own}.`);
}

/** Complaints about what no field of the form stands for. */
function Elsewhere({ fields, complaints }: { fields: readonly FormField[]; complaints: readonly Complaint[] }) {
  const others = complaints.filter((one) => !fields.some(({ path }) => isWithin(one.field, path)));
  return others.map(({ field, message }) => (
    <p key={field + message} className="complaint"><code>{field}</code>: {message}</p>
  ));
}
