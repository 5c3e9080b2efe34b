import { t } from "@lingui/core/macro";

import type { Reservation } from "../api/types";
import type { Reserved } from "../lib/lanes";
import { exactly } from "../lib/time";

/** Reservations on a lane, hatched. */
export function ReservedMarks({ reserved, named = false }: { reserved: readonly Reserved[]; named?: boolean }) {
  return reserved.map(({ reservation, left, width }) => {
    const { name, maintenance, gpus } = reservation;
    return (
      <div
        key={reservation.id}
        className="lane-reserved"
        data-kind={maintenance ? "maintenance" : "reserved"}
        style={{ left: `${left}%`, width: `${width}%` }}
        title={told(reservation)}
      >
        {named && <span>{name}{gpus !== null && ` · ${gpus}`}</span>}
      </div>
    );
  });
}

function told({ name, maintenance, gpus, users, projects, starts_at: starts, ends_at: ends }: Reservation): string {
  const [people, from, to] = [[...users, ...projects].join(", "), exactly(starts), exactly(ends)];
  if (maintenance) return t`${name}: maintenance, ${from} to ${to}`;
  return gpus === null ? t`${name}: ${people}, ${from} to ${to}` : t`${name}: ${gpus} for ${people}, ${from} to ${to}`;
}
