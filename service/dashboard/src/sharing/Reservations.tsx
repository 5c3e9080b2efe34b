import { Link } from "@tanstack/react-router";
import { useState } from "react";

import { useReservations } from "../api/sharing";
import { Notice } from "../ui/Notice";
import { Panel } from "../ui/Panel";
import { ReservationDialog } from "./ReservationDialog";
import { ReservationList } from "./ReservationList";

/** What is kept for somebody, now or later. */
export function Reservations({ admin }: { admin: boolean }) {
  const reservations = useReservations();
  const [making, setMaking] = useState(false);
  const shown = reservations.data ?? [];
  const tools = (
    <>
      <Link to="/calendar" className="button small">Calendar</Link>
      {admin && <button type="button" className="button small" onClick={() => setMaking(true)}>Reserve</button>}
    </>
  );
  return (
    <Panel title="Reservations" tools={tools}>
      <Notice error={reservations.error} />
      {reservations.data !== undefined && shown.length === 0 && (
        <p className="soft pad">Nothing is reserved. Jobs that can be preempted may use what is reserved until it is needed.</p>
      )}
      <ReservationList shown={shown} admin={admin} />
      {making && <ReservationDialog onClose={() => setMaking(false)} />}
    </Panel>
  );
}
