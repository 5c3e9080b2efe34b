import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
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
      <Link to="/calendar" className="button small"><Trans>Calendar</Trans></Link>
      {admin && <button type="button" className="button small" onClick={() => setMaking(true)}><Trans>Reserve</Trans></button>}
    </>
  );
  return (
    <Panel title={t`Reservations`} tools={tools}>
      <Notice error={reservations.error} />
      {reservations.data !== undefined && shown.length === 0 && (
        <p className="soft pad"><Trans>Nothing is reserved. Jobs that can be preempted may use what is reserved until it is needed.</Trans></p>
      )}
      <ReservationList shown={shown} admin={admin} />
      {making && <ReservationDialog onClose={() => setMaking(false)} />}
    </Panel>
  );
}
