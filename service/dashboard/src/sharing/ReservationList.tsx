import { useState } from "react";

import { useCancelReservation } from "../api/sharing";
import type { Reservation } from "../api/types";
import { Dialog } from "../ui/Dialog";
import { Notice } from "../ui/Notice";
import { ReservationDialog } from "./ReservationDialog";
import { ReservationRow } from "./ReservationRow";

/** Reservations, with what an administrator may do to those that are not over. */
export function ReservationList({ shown, admin }: { shown: readonly Reservation[]; admin: boolean }) {
  const [changed, setChanged] = useState<Reservation | null>(null);
  const [doomed, setDoomed] = useState<Reservation | null>(null);
  const isOpen = ({ state }: Reservation) => state === "planned" || state === "active";
  return (
    <>
      <ol className="reservations">
        {shown.map((one) => (
          <ReservationRow key={one.id} reservation={one}>
            {admin && isOpen(one) && (
              <span className="reservation-tools">
                <Tool label={`Change reservation ${one.name}`} onClick={() => setChanged(one)}>Change</Tool>
                <Tool label={`Cancel reservation ${one.name}`} onClick={() => setDoomed(one)}>Cancel</Tool>
              </span>
            )}
          </ReservationRow>
        ))}
      </ol>
      {changed !== null && <ReservationDialog changed={changed} onClose={() => setChanged(null)} />}
      {doomed !== null && <CancelDialog reservation={doomed} onClose={() => setDoomed(null)} />}
    </>
  );
}

function Tool({ label, children, onClick }: { label: string; children: string; onClick: () => void }) {
  return <button type="button" className="button small ghost" aria-label={label} onClick={onClick}>{children}</button>;
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
