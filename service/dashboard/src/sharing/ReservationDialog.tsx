import { useState } from "react";

import { useReserve } from "../api/sharing";
import { listed, optional } from "../lib/setting";
import { Dialog } from "../ui/Dialog";
import { Field } from "../ui/Field";
import { Notice } from "../ui/Notice";
import { Segments } from "../ui/Segments";
import { useResource } from "../ui/useResource";

const KINDS = [{ key: "people", label: "For people" }, { key: "maintenance", label: "Maintenance" }] as const;
const EMPTY = { name: "", users: "", projects: "", nodes: "", gpus: "", from: "", to: "" };

/** Asks what to keep, for whom, and when; times are in the reader's own zone. */
export function ReservationDialog({ onClose }: { onClose: () => void }) {
  const [kind, setKind] = useState<"people" | "maintenance">("people");
  const [texts, setTexts] = useState(EMPTY);
  const reserve = useReserve();
  const { many } = useResource();
  const field = (key: keyof typeof EMPTY) => ({
    value: texts[key],
    onChange: (text: string) => setTexts({ ...texts, [key]: text }),
  });
  const people = kind === "people";
  const confirm = () => reserve.mutate({
    name: texts.name,
    maintenance: !people,
    users: people ? listed(texts.users) : [],
    projects: people ? listed(texts.projects) : [],
    nodes: listed(texts.nodes),
    gpus: people ? optional(texts.gpus) : null,
    starts_at: texts.from === "" ? null : new Date(texts.from).toISOString(),
    ends_at: new Date(texts.to).toISOString(),
  }, { onSuccess: onClose });
  return (
    <Dialog title="Reserve" confirm="Reserve it" busy={reserve.isPending} onConfirm={confirm} onClose={onClose}>
      <Segments label="Kind" options={KINDS} value={kind} onChange={setKind} />
      <Field label="Name" required maxLength={100} {...field("name")} />
      {people && (
        <div className="field-pair">
          <Field label="Users" hint="Names, with commas" {...field("users")} />
          <Field label="Projects" {...field("projects")} />
        </div>
      )}
      <div className="field-pair">
        <Field label="Whole nodes" hint={people ? `Or a number of ${many}` : "They drain before it begins"} {...field("nodes")} />
        {people && <Field label={many} type="number" min={1} {...field("gpus")} />}
      </div>
      <div className="field-pair">
        <Field label="From" type="datetime-local" hint="Empty: now" {...field("from")} />
        <Field label="To" type="datetime-local" required {...field("to")} />
      </div>
      <Notice error={reserve.error} />
    </Dialog>
  );
}
