import { memo } from "react";

import type { DeviceTimeline, NodeTimeline, TimelineJob } from "../api/types";
import { type Bar, hueOf, laneOf, type Mark, place, type Reserved, type Window } from "../lib/lanes";
import { keyOf, type Use } from "../lib/utilization";
import { told } from "./LaneTip";
import { LaneUse } from "./LaneUse";
import { ReservedMarks } from "./ReservedMarks";

interface Props {
  device: DeviceTimeline;
  node: NodeTimeline;
  jobs: ReadonlyMap<number, TimelineJob>;
  reserved: readonly Reserved[];
  window: Window;
  /** How busy it was, as far as that is known. */
  use: Use | undefined;
  /** Whose jobs stand out. */
  person: string | null;
}

/** From so much of the lane's width on a bar has its job's name in it, in percent. */
const NAMED = 3;

const at = ({ left, width }: Mark) => ({ left: `${left}%`, width: `${width}%` });

/** The jobs of one device over time, and how busy it was. */
export function DeviceLane({ use, ...lane }: Props) {
  const of = nameOf(lane);
  return (
    <div className="lane" role="group" aria-label={`${of} of ${lane.node.name}`}>
      <DeviceTrack {...lane} />
      {use !== undefined && (
        <LaneUse device={keyOf(lane.node.name, lane.device.uuid)} of={of} use={use} window={lane.window} />
      )}
    </div>
  );
}

const kindOf = (device: DeviceTimeline) => (device.kind === "gpu" ? "GPU" : "slot");

const nameOf = ({ device }: Pick<Props, "device">) => `${kindOf(device)} ${device.index}`;

/** The name and the jobs: what it costs to draw hundreds of them is not paid again when the use of devices comes. */
const DeviceTrack = memo(function DeviceTrack({ device, node, jobs, reserved, window, person }: Omit<Props, "use">) {
  const { bars, rows } = laneOf(device, jobs, window);
  const now = place(window.now, window);
  const closed = device.unusable !== null ? "unusable" : node.state === "online" ? null : node.state;
  return (
    <>
      <span className="lane-name" data-closed={closed ?? undefined}>{kindOf(device)} <b>{device.index}</b></span>
      <div className="lane-track" style={{ "--rows": rows } as React.CSSProperties}>
        {closed !== null && (
          <div
            className="lane-closed"
            data-kind={closed}
            style={{ left: `${now}%`, right: 0 }}
            title={device.unusable ?? `${node.name} is ${node.state}`}
          >
            <span>{device.unusable ?? node.state}</span>
          </div>
        )}
        <ReservedMarks reserved={reserved} />
        {bars.map((bar, index) => (
          <LaneBar
            key={bar.key}
            bar={bar}
            now={window.now}
            first={index === 0}
            faded={person !== null && person !== bar.job.user}
          />
        ))}
        <i className="lane-now" style={{ left: `${now}%` }} />
      </div>
    </>
  );
});

function LaneBar({ bar, now, first, faded }: { bar: Bar; now: number; first: boolean; faded: boolean }) {
  const { job, kind, ahead, spread, row } = bar;
  const style = { "--hue": hueOf(job.user), "--row": row } as React.CSSProperties;
  return (
    <div className="lane-job" data-faded={faded || undefined} style={style}>
      {spread !== null && <i className="lane-spread" style={at(spread)} />}
      {kind === "held" && ahead !== null && <i className="lane-ahead" style={at(ahead)} />}
      <JobBar bar={bar} now={now} tabIndex={first ? 0 : -1} />
    </div>
  );
}

/** The bar itself; it leads to the job if the viewer may read that. */
function JobBar({ bar, now, tabIndex }: { bar: Bar; now: number; tabIndex: number }) {
  const { job, kind, state } = bar;
  const words = told(bar, now);
  const common = {
    className: "lane-bar",
    style: at(kind === "held" ? bar : bar.ahead ?? bar.spread ?? bar),
    "aria-label": words.join(", "),
    "data-bar": JSON.stringify(words),
    "data-kind": kind,
    "data-state": state ?? undefined,
  };
  const name = bar.width + (bar.ahead?.width ?? 0) > NAMED && `${job.number} ${job.readable ? job.name : job.user}`;
  if (!job.readable) return <span role="img" {...common}>{name}</span>;
  return <a href={`/jobs/${job.number}`} tabIndex={tabIndex} {...common}>{name}</a>;
}
