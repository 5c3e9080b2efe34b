import { plural, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useState } from "react";

import { useResume } from "../api/box";
import { useNodeTelemetry } from "../api/nodeTelemetry";
import { useReservations } from "../api/sharing";
import type { Node, Reservation } from "../api/types";
import { findingWords } from "../lib/findings";
import { bytes, sentence } from "../lib/format";
import { limitWords } from "../lib/limits";
import { lastValues } from "../lib/telemetry";
import { age, secondsBetween } from "../lib/time";
import { Message } from "../ui/Message";
import { Meter } from "../ui/Meter";
import { Notice } from "../ui/Notice";
import { Sparkline } from "../ui/Sparkline";
import { Time } from "../ui/Time";
import { useNow } from "../ui/useNow";
import { DeviceCard } from "./DeviceCard";
import { DrainDialog } from "./DrainDialog";
import { SPARK_SAMPLES } from "./spark";
import { NODE_STATES } from "./words";

/** A node: its state, its machine, and a siding for each device. */
export function NodePanel({ node, admin }: { node: Node; admin: boolean }) {
  const telemetry = useNodeTelemetry(node.name).data?.series ?? [];
  const cpu = node.latest["cpu.percent"];
  const memory = node.latest["memory.used"];
  const { name, cpus } = node;
  const [total, disk] = [bytes(node.memory), bytes(node.disk_free)];
  const held = memory === undefined ? null : bytes(memory);
  const stale = node.state === "unreachable";
  return (
    <section className="panel node" data-state={node.state} aria-label={t`Node ${name}`}>
      <header className="panel-head">
        <h2>{name}</h2>
        <span className="node-state" data-state={node.state}><i aria-hidden="true" />{NODE_STATES[node.state]}</span>
        <Seen node={node} />
        {admin && <DrainTools node={node} />}
      </header>
      <Words node={node} />
      <div className="machine" data-stale={stale || undefined}>
        <Meter
          label={plural(cpus, { one: "# core", other: "# cores" })}
          share={cpu === undefined ? null : cpu / 100}
          words={cpu === undefined ? "–" : `${Math.round(cpu)} %`}
        />
        <Sparkline values={lastValues(telemetry, "cpu.percent", SPARK_SAMPLES)} top={100} />
        <Meter
          label={t`Memory`}
          share={memory === undefined ? null : memory / node.memory}
          words={held === null ? total : t`${held} of ${total}`}
        />
        <Sparkline values={lastValues(telemetry, "memory.used", SPARK_SAMPLES)} top={node.memory} />
        <span className="faint disk"><Trans>{disk} of disk free</Trans></span>
      </div>
      <ol className="devices">
        {node.devices.map((device) => (
          <DeviceCard key={device.uuid} device={device} all={node.devices} telemetry={telemetry} stale={stale} />
        ))}
      </ol>
    </section>
  );
}

/** What its administrator says of it, and who computes where they should not. */
function Words({ node }: { node: Node }) {
  const now = useNow(30_000);
  const { drain_message: why } = node;
  const limits = node.unenforced == null ? null : limitWords(node.unenforced_finding, node.unenforced);
  // A translation may begin with a name, which keeps its letters.
  const offenders = node.offenders.map((words) => (
    findingWords(node.offender_findings.find(({ message }) => message === words), sentence(words))
  ));
  const maintenance = useReservations().data?.find((one) => one.id === node.maintenance);
  return (
    <>
      {node.labels.length > 0 && (
        <ul className="labels">
          {node.labels.map((label) => <li key={label} className="label">{label}</li>)}
        </ul>
      )}
      {limits !== null && <p className="faint node-limits"><Trans>No limits by its kernel: {limits}</Trans></p>}
      {node.maintenance != null && <p className="node-notice"><Maintained by={maintenance} now={now} /></p>}
      {node.maintenance == null && why != null && <p className="node-notice"><Trans>Drains: {why}</Trans></p>}
      {offenders.map((words) => <p key={words} className="node-notice offender" role="alert"><Message text={words} now={now} /></p>)}
    </>
  );
}

function Maintained({ by, now }: { by: Reservation | undefined; now: number }) {
  if (by === undefined) return <Trans>Drains for a maintenance; it takes jobs again when that is over.</Trans>;
  const { name, ends_at: end } = by;
  return <Trans>Drains for the maintenance {name}; it takes jobs again at <Time at={end} near={now} />.</Trans>;
}

function Seen({ node }: { node: Node }) {
  const now = useNow();
  if (node.last_seen_at === null) return <span className="faint"><Trans>never seen</Trans></span>;
  const seconds = secondsBetween(node.last_seen_at, null, now);
  const span = age(seconds);
  return (
    <span className="faint">
      {seconds < 15 ? node.hostname : <Trans>last seen <Time at={node.last_seen_at}>{span}</Time> ago</Trans>}
    </span>
  );
}

/** What an administrator may do about the jobs that come to a node. */
function DrainTools({ node }: { node: Node }) {
  return (
    <span className="panel-tools">
      {node.draining ? <ResumeButton node={node} /> : <DrainButton node={node.name} />}
    </span>
  );
}

function ResumeButton({ node: { name, state } }: { node: Node }) {
  const resume = useResume();
  return (
    <>
      <Notice error={resume.error} />
      <button
        type="button"
        className="button small"
        disabled={resume.isPending}
        title={state === "unreachable"
          ? t`New jobs may start here again once it is back`
          : t`New jobs may start here again`}
        onClick={() => resume.mutate(name)}
      >
        <Trans>Resume</Trans>
      </button>
    </>
  );
}

function DrainButton({ node }: { node: string }) {
  const [asked, setAsked] = useState(false);
  return (
    <>
      <button
        type="button"
        className="button small"
        title={t`No new job starts here`}
        onClick={() => setAsked(true)}
      >
        <Trans>Drain</Trans>
      </button>
      {asked && <DrainDialog node={node} onClose={() => setAsked(false)} />}
    </>
  );
}
