import type { ReactNode } from "react";

import type { Reservation } from "../api/types";
import { counted, type Resource } from "../lib/resources";
import { Time } from "../ui/Time";
import { useNow } from "../ui/useNow";
import { useResource } from "../ui/useResource";

/** Whose it is, what, and from when to when. */
export function ReservationRow({ reservation, children }: { reservation: Reservation; children?: ReactNode }) {
  const now = useNow(30_000);
  const { name, state, maintenance, starts_at: from, ends_at: to } = reservation;
  return (
    <li className="reservation" data-kind={maintenance ? "maintenance" : "people"}>
      <div>
        <b>{name}</b> <span className="badge" data-on={state === "active" || undefined}>{state === "active" ? "now" : state}</span>
        <p className="soft">{whatOf(reservation, useResource())} {maintenance ? "out of use" : `for ${whose(reservation)}`}</p>
        <p className="faint"><Time at={from} near={now} /> to <Time at={to} near={now} /></p>
      </div>
      {children}
    </li>
  );
}

function whatOf({ nodes, gpus }: Reservation, resource: Resource): string {
  return gpus === null ? `${nodes.length === 1 ? "Node" : "Nodes"} ${nodes.join(", ")}` : counted(gpus, resource);
}

function whose({ users, projects }: Reservation): string {
  return [...users, ...projects.map((project) => `project ${project}`)].join(", ");
}
