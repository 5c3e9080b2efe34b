import { t } from "@lingui/core/macro";

import type { Reservation } from "../api/types";
import type { CalendarRow, Day, ReservationBar } from "../lib/calendar";
import { list } from "../lib/format";
import { calendarDay, hour } from "../lib/time";

interface Props {
  days: readonly Day[];
  rows: readonly CalendarRow[];
  now: number;
  /** Null for who may only look. */
  onDay: ((day: Day) => void) | null;
  onChange: ((reservation: Reservation) => void) | null;
}

/** A column for each day and a row for each node; a phone has the list below it alone. */
export function CalendarGrid({ days, rows, now, onDay, onChange }: Props) {
  const style = { "--days": days.length } as React.CSSProperties;
  return (
    <div className="calendar" style={style}>
      <div className="calendar-row calendar-days">
        <span />
        <div>{days.map((day) => <DayHead key={day.from} day={day} now={now} onDay={onDay} />)}</div>
      </div>
      {rows.map(({ node, bars, lines }) => (
        <div key={node} className="calendar-row" role="group" aria-label={node === "" ? t`Any node` : t`Node ${node}`}>
          <b>{node === "" ? t`any node` : node}</b>
          <div className="calendar-track" style={{ "--lines": lines } as React.CSSProperties}>
            {bars.map((bar) => <Bar key={bar.reservation.id} bar={bar} now={now} onChange={onChange} />)}
          </div>
        </div>
      ))}
    </div>
  );
}

function DayHead({ day, now, onDay }: { day: Day; now: number; onDay: Props["onDay"] }) {
  const date = calendarDay(day.from);
  const today = day.from <= now && now < day.to ? "date" : undefined;
  if (onDay === null || day.to <= now) return <span aria-current={today}>{date}</span>;
  const words = t`Reserve on ${date}`;
  return (
    <button type="button" aria-current={today} aria-label={words} title={words} onClick={() => onDay(day)}>
      {date}
    </button>
  );
}

function Bar({ bar, now, onChange }: { bar: ReservationBar; now: number; onChange: Props["onChange"] }) {
  const { reservation, left, width, line } = bar;
  const words = toldOf(reservation, now);
  const common = {
    className: "calendar-bar",
    "data-kind": reservation.maintenance ? "maintenance" : "people",
    "data-over": reservation.state === "over" || undefined,
    style: { left: `${left}%`, width: `${width}%`, "--line": line } as React.CSSProperties,
    title: words,
  };
  if (onChange === null || reservation.state === "over") {
    return <span role="img" aria-label={words} {...common}>{reservation.name}</span>;
  }
  return <button type="button" aria-label={t`Change ${words}`} onClick={() => onChange(reservation)} {...common}>{reservation.name}</button>;
}

function toldOf(reservation: Reservation, now: number): string {
  const { name, maintenance, users, projects, gpus, starts_at: from, ends_at: to } = reservation;
  const [people, start, end] = [list([...users, ...projects]), hour(from, now), hour(to, now)];
  if (maintenance) return t`${name}, maintenance, ${start} to ${end}`;
  return gpus === null ? t`${name}, for ${people}, ${start} to ${end}` : t`${name}, ${gpus} for ${people}, ${start} to ${end}`;
}
