import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useState } from "react";

import { useKnownNodes } from "../api/box";
import { mayAdminister, useSettings } from "../api/session";
import { useAllReservations } from "../api/sharing";
import type { Reservation } from "../api/types";
import { type Day, daysOf, rowsOf, shownOf } from "../lib/calendar";
import { Notice } from "../ui/Notice";
import { Panel } from "../ui/Panel";
import { useNow } from "../ui/useNow";
import { useTitle } from "../ui/useTitle";
import { CalendarGrid } from "./CalendarGrid";
import { ReservationDialog } from "./ReservationDialog";
import { ReservationList } from "./ReservationList";

const WEEKS = 2;

/** What is asked for: a reservation from a day on, or another shape of one that there is. */
interface Asked {
  day?: Day;
  changed?: Reservation;
}

/** Two weeks of reservations and maintenance, by node and day of the viewer's own calendar. */
export function CalendarPage() {
  useTitle(t`Calendar`);
  const admin = mayAdminister(useSettings().data);
  const now = useNow(60_000);
  const [shift, setShift] = useState(0);
  const [asked, setAsked] = useState<Asked | null>(null);
  const all = useAllReservations();
  const days = daysOf(now, shift, WEEKS);
  const nodes = useKnownNodes().data?.items.map(({ name }) => name) ?? [];
  const shown = shownOf(all.data ?? [], days);
  return (
    <>
      <h1 className="page-title"><Trans>Calendar</Trans></h1>
      <Panel
        title={t`Reservations and maintenance`}
        tools={<Tools shift={shift} admin={admin} onShift={setShift} onReserve={() => setAsked({})} />}
      >
        <Notice error={all.error} />
        <CalendarGrid
          days={days}
          rows={rowsOf(all.data ?? [], nodes, days)}
          now={now}
          onDay={admin ? (day) => setAsked({ day }) : null}
          onChange={admin ? (changed) => setAsked({ changed }) : null}
        />
        {all.data !== undefined && shown.length === 0 && <p className="soft pad"><Trans>Nothing is reserved in these two weeks.</Trans></p>}
        <ReservationList shown={shown} admin={admin} />
        {asked !== null && <ReservationDialog {...asked} onClose={() => setAsked(null)} />}
      </Panel>
    </>
  );
}

interface ToolsProps {
  shift: number;
  admin: boolean;
  onShift: (shift: number) => void;
  onReserve: () => void;
}

function Tools({ shift, admin, onShift, onReserve }: ToolsProps) {
  return (
    <>
      <button type="button" className="button small" aria-label={t`A week earlier`} onClick={() => onShift(shift - 1)}>‹</button>
      <button type="button" className="button small" disabled={shift === 0} onClick={() => onShift(0)}><Trans>This week</Trans></button>
      <button type="button" className="button small" aria-label={t`A week later`} onClick={() => onShift(shift + 1)}>›</button>
      {admin && <button type="button" className="button small" onClick={onReserve}><Trans>Reserve</Trans></button>}
    </>
  );
}
