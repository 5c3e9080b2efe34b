import { t } from "@lingui/core/macro";
import { useState } from "react";

import { useChangeReservation, useReserve } from "../api/sharing";
import type { Reservation } from "../api/types";
import { type Day, isSkipped, localInput, workingHours } from "../lib/calendar";
import { reservable } from "../lib/resources";
import { listed, optional } from "../lib/setting";
import { Dialog } from "../ui/Dialog";
import { Field } from "../ui/Field";
import { Notice } from "../ui/Notice";
import { Segments } from "../ui/Segments";
import { useResource } from "../ui/useResource";

const KINDS = [{ key: "people", label: t`For people` }, { key: "maintenance", label: t`Maintenance` }] as const;
const EMPTY = { name: "", users: "", projects: "", nodes: "", gpus: "", from: "", to: "" };
/** A browser would take years of six digits, of which there are no dates. */
const LAST = "9999-12-30T23:59";
const zone = new Intl.DateTimeFormat().resolvedOptions().timeZone;

interface Props {
  /** The reservation that is changed. */
  changed?: Reservation;
  /** The day that a new one is begun with. */
  day?: Day;
  onClose: () => void;
}

/** Asks what to keep, for whom, and when; times are in the reader's own zone. */
export function ReservationDialog({ changed, day, onClose }: Props) {
  const [begun] = useState(() => textsOf(changed, day));
  const [kind, setKind] = useState<"people" | "maintenance">(changed?.maintenance === true ? "maintenance" : "people");
  const [texts, setTexts] = useState(begun);
  const [reserve, change] = [useReserve(), useChangeReservation()];
  const { many } = reservable(useResource());
  const field = (key: keyof typeof EMPTY) => ({
    value: texts[key],
    onChange: (text: string) => setTexts({ ...texts, [key]: text }),
  });
  const times = (key: "from" | "to") => ({
    ...field(key),
    type: "datetime-local",
    max: LAST,
    error: isSkipped(texts[key]) ? t`The clocks pass over this time: summer time begins.` : undefined,
  });
  const people = kind === "people";
  const made = () => ({
    name: texts.name,
    maintenance: !people,
    users: people ? listed(texts.users) : [],
    projects: people ? listed(texts.projects) : [],
    nodes: listed(texts.nodes),
    gpus: people ? optional(texts.gpus) : null,
    // What was left alone stays exact, to the second.
    starts_at: texts.from === begun.from && changed !== undefined ? changed.starts_at : momentOf(texts.from),
    ends_at: texts.to === begun.to && changed !== undefined ? changed.ends_at : new Date(texts.to).toISOString(),
  });
  const confirm = () => {
    if (isSkipped(texts.from) || isSkipped(texts.to)) return;
    if (changed === undefined) reserve.mutate(made(), { onSuccess: onClose });
    else change.mutate({ id: changed.id, body: made() }, { onSuccess: onClose });
  };
  const known = changed?.name ?? "";
  const [title, word] = changed === undefined ? [t`Reserve`, t`Reserve it`] : [t`Change ${known}`, t`Change it`];
  const busy = reserve.isPending || change.isPending;
  return (
    <Dialog title={title} confirm={word} busy={busy} onConfirm={confirm} onClose={onClose}>
      <Segments label={t`Kind`} options={KINDS} value={kind} onChange={setKind} />
      <Field label={t`Name`} required maxLength={100} {...field("name")} />
      {people && (
        <div className="field-pair">
          <Field label={t`Users`} hint={t`Names, with commas`} {...field("users")} />
          <Field label={t`Projects`} {...field("projects")} />
        </div>
      )}
      <div className="field-pair">
        <Field label={t`Whole nodes`} hint={people ? t`Or a number of ${many}` : t`They drain before it begins`} {...field("nodes")} />
        {people && <Field label={many} type="number" min={1} {...field("gpus")} />}
      </div>
      <div className="field-pair">
        <Field label={t({ message: "From", context: "time" })} hint={t`Empty: now`} {...times("from")} />
        <Field label={t({ message: "To", context: "time" })} hint={t`Both in your zone, ${zone}`} required {...times("to")} />
      </div>
      <Notice error={reserve.error ?? change.error} />
    </Dialog>
  );
}

const momentOf = (text: string) => (text === "" ? null : new Date(text).toISOString());

/** What the fields have at first: the reservation's own, or a working day of the one that was chosen. */
function textsOf(changed: Reservation | undefined, day: Day | undefined): typeof EMPTY {
  if (changed !== undefined) {
    return {
      name: changed.name,
      users: changed.users.join(", "),
      projects: changed.projects.join(", "),
      nodes: changed.nodes.join(", "),
      gpus: changed.gpus === null ? "" : String(changed.gpus),
      from: localInput(Date.parse(changed.starts_at)),
      to: localInput(Date.parse(changed.ends_at)),
    };
  }
  if (day === undefined) return EMPTY;
  return { ...EMPTY, ...workingHours(day, Date.now()) };
}
