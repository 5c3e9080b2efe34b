import { plural, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Fragment } from "react";

import type { Refused, Verdict } from "../api/submit";
import type { DryRun } from "../api/types";
import { notesWords } from "../lib/notes";
import { reasonWords } from "../lib/reasons";
import type { FormField } from "../lib/schema";
import { allFields, fieldAt, type SpecForm } from "../lib/specForm";
import { Forecast } from "../ui/Forecast";
import { Message } from "../ui/Message";
import { useNow } from "../ui/useNow";
import { idOf } from "./SpecField";

type Start = NonNullable<DryRun["start"]>;

/** What the service says of the spec: where and when it would start, or what is wrong with it. */
export function Outcome({ verdict, form }: { verdict: Verdict | null; form: SpecForm }) {
  return (
    <div aria-live="polite">
      {verdict !== null && ("checked" in verdict
        ? <Plan checked={verdict.checked} />
        : <Wrong verdict={verdict} fields={allFields(form)} />)}
    </div>
  );
}

function Plan({ checked }: { checked: DryRun }) {
  const { start, trials, world_size: processes, notes } = checked;
  const now = useNow(10_000);
  return (
    <dl className="facts plan">
      {start != null && (
        <>
          <div>
            <dt><Trans context="time">Start</Trans></dt>
            <dd>
              {start.expected_start_at === null
                ? t`cannot be told`
                : <Forecast p50={start.expected_start_at} p90={start.expected_start_p90_at} now={now} />}
            </dd>
          </div>
          {start.devices.length > 0 && <div><dt><Trans>Runs on</Trans></dt><dd>{placesOf(start.devices)}</dd></div>}
          <div><dt><Trans>Place in the queue</Trans></dt><dd>{start.position}</dd></div>
          <div><dt><Trans>Now</Trans></dt><dd><Message text={reasonOf(start)} now={now} /></dd></div>
        </>
      )}
      <div><dt><Trans>Processes</Trans></dt><dd>{trials == null ? processes : inTrials(processes, trials)}</dd></div>
      <div><dt><Trans>Note</Trans></dt><dd><Message text={notesWords(notes) || t`The spec is fine.`} now={now} /></dd></div>
    </dl>
  );
}

function reasonOf({ reason: message, reason_code: code, reason_params: params }: Start): string {
  return reasonWords({ code, message, params });
}

function inTrials(processes: number, count: number): string {
  const trials = plural(count, { one: "# trial", other: "# trials" });
  return t`${processes} in each of ${trials}`;
}

function placesOf(devices: Start["devices"]): string {
  const nodes = [...new Set(devices.map(({ node }) => node))];
  return nodes.map((node) => {
    const own = devices.filter((one) => one.node === node);
    const indices = own.map(({ index }) => index).join(", ");
    return own[0]?.kind === "cpu" ? t`${node}: CPU slot ${indices}` : t`${node}: GPU ${indices}`;
  }).join("; ");
}

function Wrong({ verdict, fields }: { verdict: Refused; fields: readonly FormField[] }) {
  const { complaints, detail } = verdict;
  if (complaints.length === 0) return <p className="notice">{detail}</p>;
  return (
    <ul className="spec-wrong" aria-label={t`Problems`}>
      {complaints.map(({ field, message }) => (
        <li key={`${field} ${message}`}>
          <Place field={field} fields={fields} /> {message}
        </li>
      ))}
    </ul>
  );
}

/** A field's name, which leads to it where the form has it. */
function Place({ field, fields }: { field: string; fields: readonly FormField[] }) {
  const found = fieldAt(fields, field);
  if (found === null) return <Fragment><code>{field}</code>:</Fragment>;
  return <button type="button" className="plain" onClick={() => show(idOf(found.path))}><code>{field}</code></button>;
}

/** Unfolds what a field is in, and goes there. */
function show(id: string): void {
  const element = document.getElementById(id);
  for (let fold = element?.closest("details"); fold; fold = fold.parentElement?.closest("details")) fold.open = true;
  element?.focus();
  element?.scrollIntoView({ block: "center" });
}
