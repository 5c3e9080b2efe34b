import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import type { ReactNode } from "react";

import type { Reservation } from "../api/types";
import { list } from "../lib/format";
import { counted, reservable, type Resource } from "../lib/resources";
import { Time } from "../ui/Time";
import { useNow } from "../ui/useNow";
import { useResource } from "../ui/useResource";

const STATES: Record<Reservation["state"], string> = {
  planned: t`planned`, active: t`now`, over: t`over`, cancelled: t`cancelled`,
};

/** Whose it is, what, and from when to when. */
export function ReservationRow({ reservation, children }: { reservation: Reservation; children?: ReactNode }) {
  const now = useNow(30_000);
  const { name, state, maintenance, starts_at: from, ends_at: to } = reservation;
  return (
    <li className="reservation" data-kind={maintenance ? "maintenance" : "people"}>
      <div>
        <b>{name}</b> <span className="badge" data-on={state === "active" || undefined}>{STATES[state]}</span>
        <p className="soft">{told(reservation, useResource())}</p>
        <p className="faint"><Trans><Time at={from} near={now} /> to <Time at={to} near={now} /></Trans></p>
      </div>
      {children}
    </li>
  );
}

function told(reservation: Reservation, resource: Resource): string {
  const what = whatOf(reservation, resource);
  const people = list([...reservation.users, ...reservation.projects.map((project) => t`project ${project}`)]);
  return reservation.maintenance ? t`${what} out of use` : t`${what} for ${people}`;
}

function whatOf({ nodes, gpus }: Reservation, resource: Resource): string {
  if (gpus !== null) return counted(gpus, reservable(resource));
  const names = list(nodes);
  return nodes.length === 1 ? t`Node ${names}` : t`Nodes ${names}`;
}
