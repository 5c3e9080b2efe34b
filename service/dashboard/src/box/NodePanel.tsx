import { useState } from "react";

import { useNodeTelemetry, useResume } from "../api/box";
import { useReservations } from "../api/sharing";
import type { Node } from "../api/types";
import { bytes, plural, sentence } from "../lib/format";
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

/** A node: its state, its machine, and a siding for each device. */
export function NodePanel({ node, admin }: { node: Node; admin: boolean }) {
  const telemetry = useNodeTelemetry(node.name).data?.series ?? [];
  const cpu = node.latest["cpu.percent"];
  const memory = node.latest["memory.used"];
  return (
    <section className="panel node" data-state={node.state} aria-label={`Node ${node.name}`}>
      <header className="panel-head">
        <h2>{node.name}</h2>
        <span className="node-state" data-state={node.state}><i aria-hidden="true" />{node.state}</span>
        <Seen node={node} />
        {admin && <DrainButton node={node} />}
      </header>
      <Words node={node} />
      <div className="machine">
        <Meter
          label={plural(node.cpus, "core")}
          share={cpu === undefined ? null : cpu / 100}
          words={cpu === undefined ? "–" : `${Math.round(cpu)} %`}
        />
        <Sparkline values={lastValues(telemetry, "cpu.percent", SPARK_SAMPLES)} top={100} />
        <Meter
          label="Memory"
          share={memory === undefined ? null : memory / node.memory}
          words={memory === undefined ? bytes(node.memory) : `${bytes(memory)} of ${bytes(node.memory)}`}
        />
        <Sparkline values={lastValues(telemetry, "memory.used", SPARK_SAMPLES)} top={node.memory} />
        <span className="faint disk">{bytes(node.disk_free)} of disk free</span>
      </div>
      <ol className="devices">
        {node.devices.map((device) => (
          <DeviceCard key={device.uuid} device={device} all={node.devices} telemetry={telemetry} />
        ))}
      </ol>
    </section>
  );
}

/** What its administrator says of it, and who computes where they should not. */
function Words({ node }: { node: Node }) {
  const now = useNow(30_000);
  const maintenance = useReservations().data?.find((one) => one.id === node.maintenance);
  return (
    <>
      {node.labels.length > 0 && (
        <ul className="labels">
          {node.labels.map((label) => <li key={label} className="label">{label}</li>)}
        </ul>
      )}
      {node.unenforced != null && (
        <p className="faint node-limits">No limits by its kernel: {node.unenforced}</p>
      )}
      {node.maintenance != null && (
        <p className="node-notice">
          Drains for {maintenance === undefined ? "a maintenance" : `the maintenance ${maintenance.name}`}; it takes jobs
          again {maintenance === undefined ? "when that is over" : <>at <Time at={maintenance.ends_at} near={now} /></>}.
        </p>
      )}
      {node.maintenance == null && node.drain_message != null && (
        <p className="node-notice">Drains: {node.drain_message}</p>
      )}
      {node.offenders.map((words) => <p key={words} className="node-notice offender" role="alert"><Message text={sentence(words)} now={now} /></p>)}
    </>
  );
}

function Seen({ node }: { node: Node }) {
  const now = useNow();
  if (node.last_seen_at === null) return <span className="faint">never seen</span>;
  const seconds = secondsBetween(node.last_seen_at, null, now);
  return <span className="faint">{seconds < 15 ? node.hostname : <>last seen <Time at={node.last_seen_at}>{age(seconds)}</Time> ago</>}</span>;
}

function DrainButton({ node }: { node: Node }) {
  const [asked, setAsked] = useState(false);
  const resume = useResume();
  if (node.state === "draining") {
    return (
      <span className="panel-tools">
        <Notice error={resume.error} />
        <button
          type="button"
          className="button small"
          disabled={resume.isPending}
          title="New jobs may start here again"
          onClick={() => resume.mutate(node.name)}
        >
          Resume
        </button>
      </span>
    );
  }
  return (
    <span className="panel-tools">
      <button
        type="button"
        className="button small"
        title="No new job starts here"
        onClick={() => setAsked(true)}
      >
        Drain
      </button>
      {asked && <DrainDialog node={node.name} onClose={() => setAsked(false)} />}
    </span>
  );
}
