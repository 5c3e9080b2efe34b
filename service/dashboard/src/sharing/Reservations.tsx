import { useState } from "react";

import { useCancelReservation, useReservations } from "../api/sharing";
import type { Reservation } from "../api/types";
import { Dialog } from "../ui/Dialog";
import { Notice } from "../ui/Notice";
import { Panel } from "../ui/Panel";
import { ReservationDialog } from "./ReservationDialog";
import { ReservationRow } from "./ReservationRow";

/** What is kept for somebody, now or later. */
export function Reservations({ admin }: { admin: boolean }) {
  const reservations = useReservations();
  const [making, setMaking] = useState(false);
  const [doomed, setDoomed] = useState<Reservation | null>(null);
  const shown = reservations.data ?? [];
  const tools = admin && (
    <button type="button" className="button small" onClick={() => setMaking(true)}>Reserve</button>
  );
  return (
    <Panel title="Reservations" tools={tools}>
      <Notice error={reservations.error} />
      {reservations.data !== undefined && shown.length === 0 && (
        <p className="soft pad">Nothing is reserved. Jobs that can be preempted may use what is reserved until it is needed.</p>
      )}
      <ol className="reservations">
        {shown.map((one) => (
          <ReservationRow key={one.id} reservation={one}>
            {admin && (
              <button
                type="button"
                className="button small ghost"
                aria-label={`Cancel reservation ${one.name}`}
                onClick={() => setDoomed(one)}
              >
                Cancel
              </button>
            )}
          </ReservationRow>
        ))}
      </ol>
      {making && <ReservationDialog onClose={() => setMaking(false)} />}
      {doomed !== null && <CancelDialog reservation={doomed} onClose={() => setDoomed(null)} />}
    </Panel>
  );
}

function CancelDialog({ reservation, onClose }: { reservation: Reservation; onClose: () => void }) {
  const cancel = useCancelReservation();
  return (
    <Dialog
      title={`Cancel the reservation ${reservation.name}?`}
      confirm="Cancel the reservation"
      danger
      busy={cancel.isPending}
      onConfirm={() => cancel.mutate(reservation.id, { onSuccess: onClose })}
      onClose={onClose}
    >
      <p>{reservation.maintenance ? "Its nodes take jobs again." : "All jobs may use what was reserved."}</p>
      <Notice error={cancel.error} />
    </Dialog>
  );
}
