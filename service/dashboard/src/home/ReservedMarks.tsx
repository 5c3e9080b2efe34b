import type { Reserved } from "../lib/lanes";
import { exactly } from "../lib/time";

/** Reservations on a lane, hatched. */
export function ReservedMarks({ reserved, named = false }: { reserved: readonly Reserved[]; named?: boolean }) {
  return reserved.map(({ reservation, left, width }) => {
    const { name, maintenance, gpus, users, projects, starts_at: starts, ends_at: ends } = reservation;
    const whose = maintenance ? "maintenance" : [...users, ...projects].join(", ");
    return (
      <div
        key={reservation.id}
        className="lane-reserved"
        data-kind={maintenance ? "maintenance" : "reserved"}
        style={{ left: `${left}%`, width: `${width}%` }}
        title={`${name}: ${gpus === null ? "" : `${gpus} for `}${whose}, ${exactly(starts)} to ${exactly(ends)}`}
      >
        {named && <span>{name}{gpus !== null && ` · ${gpus}`}</span>}
      </div>
    );
  });
}
