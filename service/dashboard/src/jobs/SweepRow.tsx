import { Link } from "@tanstack/react-router";

import { useSweep } from "../api/sweeps";
import type { Group } from "../api/types";
import { metric, plural } from "../lib/format";
import { age, duration, secondsBetween } from "../lib/time";
import { stateOf, valueOf } from "../lib/trials";
import { StateBar } from "../ui/StateBar";
import { Time } from "../ui/Time";
import { FilterWord } from "./FilterWord";

interface Props {
  sweep: Group;
  now: number;
  onFilter: (change: Record<string, string | undefined>) => void;
}

/** All jobs of a sweep as one row. */
export function SweepRow({ sweep, now, onFilter }: Props) {
  return (
    <tr className="sweep-row" data-state={stateOf(sweep)}>
      <td className="num faint cell-number">{sweep.number}</td>
      <td className="cell-name">
        <Link to="/sweeps/$sweepId" params={{ sweepId: String(sweep.number) }} className="job-name">{sweep.name}</Link>
        <div className="who">
          <span className="badge">sweep of {plural(sweep.size, "job")}</span>
          <FilterWord label={sweep.user} title={`Jobs of ${sweep.user}`} onClick={() => onFilter({ user: sweep.user })} />
          <span aria-hidden="true">·</span>
          <FilterWord
            label={sweep.project}
            title={`Jobs of project ${sweep.project}`}
            onClick={() => onFilter({ project: sweep.project })}
          />
        </div>
      </td>
      <td className="cell-states" colSpan={3}>
        {sweep.paused !== null && <span className="paused-word">paused</span>}
        <StateBar states={sweep.states} />
      </td>
      <td className="cell-latest"><Best sweep={sweep} /></td>
      <td className="num cell-ran">
        {sweep.ended_at !== null && duration(secondsBetween(sweep.created_at, sweep.ended_at, now))}
      </td>
      <td className="num faint cell-age">
        <Time at={sweep.created_at}>{age(secondsBetween(sweep.created_at, null, now))}</Time>
      </td>
    </tr>
  );
}

function Best({ sweep }: { sweep: Group }) {
  const found = useSweep(sweep.id).data;
  const value = found?.best && valueOf(found.best, found.metric);
  if (typeof value !== "number") return null;
  return <span className="latest"><span className="faint">best {found?.metric}</span> {metric(value)}</span>;
}
