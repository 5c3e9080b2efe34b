import { t } from "@lingui/core/macro";

import { useReservations } from "../api/sharing";
import { ReservationRow } from "../sharing/ReservationRow";
import { Panel } from "../ui/Panel";

/** What is reserved now or soon; nothing is shown while nothing is. */
export function ReservedPanel() {
  const reservations = useReservations().data ?? [];
  if (reservations.length === 0) return null;
  return (
    <Panel title={t`Reserved`} className="reserved">
      <ol className="reservations">{reservations.map((one) => <ReservationRow key={one.id} reservation={one} />)}</ol>
    </Panel>
  );
}
