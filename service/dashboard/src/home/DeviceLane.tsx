import { t } from "@lingui/core/macro";
import { memo } from "react";

import type { DeviceTimeline, NodeTimeline, TimelineJob } from "../api/types";
import {
  type Bar, type Closed, closedOf, hueOf, laneOf, type Mark, outagesOf, place, type Reserved, type Window,
} from "../lib/lanes";
import { keyOf, type Use } from "../lib/utilization";
import { Coded } from "../ui/Coded";
import { told, toldClosed, toldIdle, toldOutage, whyOf } from "./LaneTip";
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
  /** Why it is idle; null: it is not. */
  idle: string | null;
  /** Whose jobs stand out. */
  person: string | null;
}

/** From so much of the lane's width on a bar has its job's name in it, in percent. */
const NAMED = 3;

const at = ({ left, width }: Mark) => ({ left: `${left}%`, width: `${width}%` });

/** The jobs of one device over time, and how busy it was. */
export function DeviceLane({ use, ...lane }: Props) {
  const of = nameOf(lane);
  const node = lane.node.name;
  return (
    <div className="lane" role="group" aria-label={t`${of} of ${node}`}>
      <DeviceTrack {...lane} />
      {use !== undefined && (
        <LaneUse device={keyOf(node, lane.device.uuid)} of={of} use={use} window={lane.window} />
      )}
    </div>
  );
}

const kindOf = (device: DeviceTimeline) => (device.kind === "gpu" ? "GPU" : t`slot`);

const nameOf = ({ device }: Pick<Props, "device">) => `${kindOf(device)} ${device.index}`;

/** The name and the jobs: what it costs to draw hundreds of them is not paid again when the use of devices comes. */
const DeviceTrack = memo(function DeviceTrack(lane: Omit<Props, "use">) {
  const { device, node, jobs, reserved, window, idle, person } = lane;
  const { bars, rows } = laneOf(device, jobs, window);
  const now = place(window.now, window);
  const closed = closedOf(device, node);
  return (
    <>
      <span className="lane-name" data-closed={closed?.kind}>{kindOf(device)} <b>{device.index}</b></span>
      <div className="lane-track" style={{ "--rows": rows } as React.CSSProperties}>
        {outagesOf(device, node, window).map(({ outage, ...drawn }) => (
          <div
            key={`${outage.kind} ${outage.starts_at}`}
            className="lane-outage"
            data-kind={outage.kind}
            style={at(drawn)}
            {...telling(toldOutage(outage, window.now))}
          />
        ))}
        <Ahead closed={closed} idle={idle} now={window.now} left={now} />
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

/** The words of what is drawn, for the tip and for those who do not see it. */
const telling = (words: readonly string[]) => ({
  role: "img",
  "aria-label": words.join(", "),
  "data-bar": JSON.stringify(words),
});

/** What is known of a device from now on besides its jobs: why it gets none, or why it is idle. */
function Ahead({ closed, idle, now, left }: { closed: Closed | null; idle: string | null; now: number; left: number }) {
  const style = { left: `${left}%`, right: 0 };
  if (closed === null) {
    return idle === null ? null : <div className="lane-free" style={style} {...telling(toldIdle(idle, now))} />;
  }
  return (
    <div className="lane-closed" data-kind={closed.kind} style={style} {...telling(toldClosed(closed, now))}>
      <span><Coded text={whyOf(closed, now)} /></span>
    </div>
  );
}

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
