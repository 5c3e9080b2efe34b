import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Link, useNavigate } from "@tanstack/react-router";
import { type KeyboardEvent, memo, type MouseEvent, type PointerEvent, useMemo, useState } from "react";

import { useTimeline, useUtilization } from "../api/box";
import type { NodeTimeline, Timeline } from "../api/types";
import { NODE_STATES } from "../box/words";
import { hueOf, idleOf, outageKinds, place, reservedOf, ticksOf, type Window, windowOf } from "../lib/lanes";
import { resourceOf } from "../lib/resources";
import { hour } from "../lib/time";
import { keyOf, toldAt, type Use, usesOf } from "../lib/utilization";
import { NoNode } from "../ui/NoNode";
import { Notice } from "../ui/Notice";
import { Panel } from "../ui/Panel";
import { Segments } from "../ui/Segments";
import { useNow } from "../ui/useNow";
import { DeviceLane } from "./DeviceLane";
import { type Hours, HOURS } from "./useHours";
import { LaneTip, type Pointed } from "./LaneTip";
import { ReservedMarks } from "./ReservedMarks";

const SPANS = HOURS.map((key) => ({ key, label: `${key} h` }));
const MOVES: Record<string, [number, number]> = {
  ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1],
};

/** A lane for each device: who has had it, has it, and is expected to get it. */
export function Lanes({ hours, onHours }: { hours: Hours; onHours: (hours: Hours) => void }) {
  const timeline = useTimeline(Number(hours));
  if (timeline.data?.nodes.length === 0) return <NoNode />;
  const title = resourceOf(timeline.data?.nodes ?? []).many;
  return (
    <Panel
      title={title}
      className="lanes-panel"
      tools={(
        <>
          <Link to="/calendar" className="button small"><Trans>Calendar</Trans></Link>
          <Segments label={t`Time shown`} options={SPANS} value={hours} onChange={onHours} />
        </>
      )}
    >
      <Notice error={timeline.error} />
      {timeline.data !== undefined && <Picture timeline={timeline.data} hours={Number(hours)} />}
    </Panel>
  );
}

function Picture({ timeline, hours }: { timeline: Timeline; hours: number }) {
  // A pixel is some twenty seconds at least.
  const now = useNow(hours * 2_500);
  const navigate = useNavigate();
  const [pointed, setPointed] = useState<Pointed | null>(null);
  const [person, setPerson] = useState<string | null>(null);
  const window = useMemo(() => windowOf(hours, now), [hours, now]);
  const utilization = useUtilization(hours).data;
  const uses = useMemo(() => usesOf(utilization), [utilization]);
  const point = (event: PointerEvent) => {
    const words = barWords(event.target as Element) ?? stripWords(event, uses, window);
    setPointed(words === null ? null : { words, x: event.clientX, y: event.clientY });
  };
  const open = (event: MouseEvent) => {
    const href = (event.target as Element).closest("a")?.getAttribute("href");
    if (href == null || event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    void navigate({ to: "/jobs/$jobId", params: { jobId: href.slice("/jobs/".length) } });
  };
  return (
    <div
      className="lanes"
      data-person={person ?? undefined}
      onPointerMove={point}
      onPointerLeave={() => setPointed(null)}
      onFocus={(event) => setPointed(atFocus(event.target))}
      onBlur={() => setPointed(null)}
      onClick={open}
      onKeyDown={walk}
    >
      <Axis window={window} />
      <AnyNode timeline={timeline} window={window} />
      {timeline.nodes.map((node) => (
        <NodeLanes key={node.name} node={node} timeline={timeline} window={window} uses={uses} person={person} />
      ))}
      <Legend timeline={timeline} window={window} uses={uses} onPoint={setPerson} />
      <LaneTip pointed={pointed} />
    </div>
  );
}

/** What the bar tells that is pointed at. */
function barWords(target: Element): string[] | null {
  const words = target.closest("[data-bar]")?.getAttribute("data-bar");
  return words == null ? null : JSON.parse(words) as string[];
}

/** What is known of a device's use at the moment that is pointed at. */
function stripWords({ target, clientX }: PointerEvent, uses: ReadonlyMap<string, Use>, window: Window) {
  const strip = (target as Element).closest("[data-use]");
  const use = uses.get(strip?.getAttribute("data-use") ?? "");
  if (strip === null || use === undefined) return null;
  const { left, width } = strip.getBoundingClientRect();
  const at = window.from + (clientX - left) / width * (window.to - window.from);
  const told = at > window.now ? null : toldAt(use, at);
  return told === null ? null : [hour(new Date(at).toISOString(), window.now), ...told];
}

function atFocus(target: Element): Pointed | null {
  if (!target.matches("[data-bar]:focus-visible")) return null;
  const { left, bottom } = target.getBoundingClientRect();
  return { words: barWords(target) ?? [], x: left, y: bottom };
}

/** Arrow keys walk along a lane, and from lane to lane. */
function walk(event: KeyboardEvent<HTMLElement>) {
  const move = MOVES[event.key];
  const bar = (event.target as Element).closest<HTMLElement>("a[data-bar]");
  const lane = bar?.closest(".lane-track");
  if (move === undefined || bar == null || lane == null) return;
  event.preventDefault();
  const barsOf = (one: Element | undefined) => [...one?.querySelectorAll<HTMLElement>("a[data-bar]") ?? []];
  const tracks = [...event.currentTarget.querySelectorAll(".lane-track")].filter((one) => barsOf(one).length > 0);
  if (move[1] !== 0) barsOf(tracks[tracks.indexOf(lane) + move[1]]).at(-1)?.focus();
  else barsOf(lane)[barsOf(lane).indexOf(bar) + move[0]]?.focus();
}

/** Whether a tick's words stand clear of the end and of those of now. */
function hasRoom(at: number, window: Window): boolean {
  return place(at, window) < 97 && Math.abs(place(at, window) - place(window.now, window)) > 4;
}

function Axis({ window }: { window: Window }) {
  return (
    <div className="lane lane-axis" aria-hidden="true">
      <span />
      <div className="lane-ticks">
        {ticksOf(window, 9).filter((at) => hasRoom(at, window)).map((at) => (
          <span key={at} style={{ left: `${place(at, window)}%` }}>{hour(new Date(at).toISOString(), at)}</span>
        ))}
        <b style={{ left: `${place(window.now, window)}%` }}><Trans>now</Trans></b>
      </div>
    </div>
  );
}

/** Reservations of a number of devices, on whichever node. */
function AnyNode({ timeline, window }: { timeline: Timeline; window: Window }) {
  const reserved = reservedOf(timeline, null, window);
  if (reserved.length === 0) return null;
  return (
    <div className="lane" role="group" aria-label={t`Reserved on any node`}>
      <span className="lane-name"><Trans>reserved</Trans></span>
      <div className="lane-track" data-thin><ReservedMarks reserved={reserved} named /></div>
    </div>
  );
}

interface NodeProps {
  node: NodeTimeline;
  timeline: Timeline;
  window: Window;
  uses: ReadonlyMap<string, Use>;
  person: string | null;
}

const NodeLanes = memo(function NodeLanes({ node, timeline, window, uses, person }: NodeProps) {
  const { name, state } = node;
  const jobs = useMemo(() => new Map(timeline.jobs.map((job) => [job.number, job])), [timeline]);
  // The same array until something changes: lanes with hundreds of bars are drawn anew only then.
  const reserved = useMemo(() => reservedOf(timeline, node.name, window), [timeline, node.name, window]);
  return (
    <section aria-label={t`Lanes of ${name}`}>
      {(timeline.nodes.length > 1 || node.state !== "online") && (
        <h3 className="lane-node">
          {name} {state !== "online" && <span className="node-state" data-state={state}><i />{NODE_STATES[state]}</span>}
        </h3>
      )}
      {node.devices.map((device) => (
        <DeviceLane
          key={device.uuid}
          device={device}
          node={node}
          jobs={jobs}
          reserved={reserved}
          window={window}
          use={uses.get(keyOf(node.name, device.uuid))}
          idle={idleOf(timeline, node.name, device.index)}
          person={person}
        />
      ))}
    </section>
  );
});

interface LegendProps {
  timeline: Timeline;
  window: Window;
  uses: ReadonlyMap<string, Use>;
  onPoint: (person: string | null) => void;
}

/** Whose jobs have which colour; pointing at one fades those of all others. */
function Legend({ timeline, window, uses, onPoint }: LegendProps) {
  const people = [...new Set(timeline.jobs.map(({ user }) => user))].sort((one, other) => one.localeCompare(other));
  const { broken, drained } = outageKinds(timeline.nodes, window);
  if (people.length === 0 && uses.size === 0 && !broken && !drained) {
    return <p className="faint lane-legend"><Trans>No job has run in this time.</Trans></p>;
  }
  return (
    <ul className="lane-legend" aria-label={t`People`}>
      {people.map((user) => (
        <li key={user} onPointerEnter={() => onPoint(user)} onPointerLeave={() => onPoint(null)}>
          <i style={{ "--hue": hueOf(user) } as React.CSSProperties} />{user}
        </li>
      ))}
      <li className="faint"><i data-kind="expected" /><Trans>expected, to nine cases of ten</Trans></li>
      <li className="faint"><i data-kind="reserved" /><Trans>reserved</Trans></li>
      {drained && <li className="faint"><i data-kind="drain" /><Trans>draining, maintenance: no new jobs</Trans></li>}
      {broken && <li className="faint"><i data-kind="quarantine" /><Trans>quarantine, unreachable: no new jobs</Trans></li>}
      {uses.size > 0 && <li className="faint"><i data-kind="busy" /><Trans>busy</Trans></li>}
      {uses.size > 0 && <li className="faint"><i data-kind="memory" /><Trans>memory held</Trans></li>}
    </ul>
  );
}
