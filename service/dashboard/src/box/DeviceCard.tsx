import { t } from "@lingui/core/macro";
import { Link } from "@tanstack/react-router";

import type { NodeDevice, Series } from "../api/types";
import { findingWords } from "../lib/findings";
import { bytes } from "../lib/format";
import { shownName } from "../lib/jobWords";
import { nearness } from "../lib/nearness";
import { lastValues } from "../lib/telemetry";
import { Message } from "../ui/Message";
import { Meter } from "../ui/Meter";
import { Sparkline } from "../ui/Sparkline";
import { useNow } from "../ui/useNow";
import { SPARK_SAMPLES } from "./spark";

interface Props {
  device: NodeDevice;
  /** All devices of the node. */
  all: readonly NodeDevice[];
  telemetry: readonly Series[];
  /** What was measured is old: its node is not heard. */
  stale: boolean;
}

/** A siding of the yard: the device's track, and the job that stands on it. */
export function DeviceCard({ device, all, telemetry, stale }: Props) {
  const status = device.unusable !== null ? "unusable" : device.job !== null ? "held" : "free";
  return (
    <li className="device" data-status={status}>
      <div className="device-plate">
        <b>{device.index}</b>
        <span>{device.kind === "gpu" ? "GPU" : t`slot`}</span>
      </div>
      <div className="siding">
        <Status device={device} stale={stale} />
        {device.holders.length > 0 && <Holders device={device} />}
        <div className="siding-rail" aria-hidden="true" />
        <span className="device-name">{[device.kind === "gpu" ? device.name : t`CPU slot`, ...nearness(device, all)].join(" · ")}</span>
      </div>
      {device.kind === "gpu" && device.unusable === null && <Gauges device={device} telemetry={telemetry} stale={stale} />}
    </li>
  );
}

/** Why it is out of use, whoever still holds it, or that it is free: of a node that is heard. */
function Status({ device, stale }: Pick<Props, "device" | "stale">) {
  const now = useNow(30_000);
  if (device.unusable !== null) {
    const why = findingWords(device.finding, device.unusable);
    return <p className="siding-words danger-words"><Message text={why} now={now} /></p>;
  }
  return device.holders.length === 0 ? <p className="siding-words faint">{stale ? t`no job has it` : t`free`}</p> : null;
}

function Holders({ device }: { device: NodeDevice }) {
  return (
    <div className="cars">
      {device.holders.map((holder) => (
        holder.readable
          ? (
              <Link key={holder.job} to="/jobs/$jobId" params={{ jobId: holder.job }} className="car">
                <Car holder={holder} />
              </Link>
            )
          : <span key={holder.job} className="car"><Car holder={holder} /></span>
      ))}
    </div>
  );
}

function Car({ holder }: { holder: NodeDevice["holders"][number] }) {
  return (
    <>
      <span className="car-number">{holder.job_number}</span>
      <span className="car-name">{shownName(holder.job_name, holder.readable)}</span>
      {holder.share !== null && <span className="car-share">{bytes(holder.share)}</span>}
      <span className="car-user">{holder.user}</span>
    </>
  );
}

function Gauges({ device, telemetry, stale }: Omit<Props, "all">) {
  const { index, utilization, memory, memory_used: used } = device;
  const total = bytes(memory);
  const held = used === null ? null : bytes(used);
  const series = (what: string) => lastValues(telemetry, `gpu.${index}.${what}`, SPARK_SAMPLES);
  return (
    <div className="gauges" data-stale={stale || undefined}>
      <Meter
        label={t`Load`}
        share={utilization === null ? null : utilization / 100}
        words={utilization === null ? "–" : `${Math.round(utilization)} %`}
      />
      <Sparkline values={series("utilization")} top={100} />
      <Meter
        label={t({ message: "Memory", context: "GPU" })}
        share={used === null ? null : used / memory}
        words={held === null ? total : t`${held} of ${total}`}
      />
      <Sparkline values={series("memory_used")} top={memory} />
    </div>
  );
}
