import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
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
              <Tools name={one.name} onChange={() => setChanged(one)} onCancel={() => setDoomed(one)} />
            )}
          </ReservationRow>
        ))}
      </ol>
      {changed !== null && <ReservationDialog changed={changed} onClose={() => setChanged(null)} />}
      {doomed !== null && <CancelDialog reservation={doomed} onClose={() => setDoomed(null)} />}
    </>
  );
}

function Tools({ name, onChange, onCancel }: { name: string; onChange: () => void; onCancel: () => void }) {
  return (
    <span className="reservation-tools">
      <button type="button" className="button small ghost" aria-label={t`Change reservation ${name}`} onClick={onChange}>
        <Trans>Change</Trans>
      </button>
      <button type="button" className="button small ghost" aria-label={t`Cancel reservation ${name}`} onClick={onCancel}>
        <Trans>Cancel</Trans>
      </button>
    </span>
  );
}

function CancelDialog({ reservation, onClose }: { reservation: Reservation; onClose: () => void }) {
  const cancel = useCancelReservation();
  const { name, maintenance } = reservation;
  return (
    <Dialog
      title={t`Cancel the reservation ${name}?`}
      confirm={t`Cancel the reservation`}
      danger
      busy={cancel.isPending}
      onConfirm={() => cancel.mutate(reservation.id, { onSuccess: onClose })}
      onClose={onClose}
    >
      <p>
        {maintenance ? <Trans>Its nodes take jobs again.</Trans> : <Trans>All jobs may use what was reserved.</Trans>}
      </p>
      <Notice error={cancel.error} />
    </Dialog>
  );
}
