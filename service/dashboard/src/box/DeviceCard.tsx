import { Link } from "@tanstack/react-router";

import type { NodeDevice, Series } from "../api/types";
import { bytes } from "../lib/format";
import { lastValues } from "../lib/telemetry";
import { Meter } from "../ui/Meter";
import { Sparkline } from "../ui/Sparkline";
import { SPARK_SAMPLES } from "./spark";

/** A siding of the yard: the device's track, and the job that stands on it. */
export function DeviceCard({ device, telemetry }: { device: NodeDevice; telemetry: readonly Series[] }) {
  const status = device.unusable !== null ? "unusable" : device.job !== null ? "held" : "free";
  return (
    <li className="device" data-status={status}>
      <div className="device-plate">
        <b>{device.index}</b>
        <span>{device.kind === "gpu" ? "GPU" : "slot"}</span>
      </div>
      <div className="siding">
        <Holder device={device} />
        <div className="siding-rail" aria-hidden="true" />
        <span className="device-name">{device.name}</span>
      </div>
      {device.kind === "gpu" && device.unusable === null && <Gauges device={device} telemetry={telemetry} />}
    </li>
  );
}

function Holder({ device }: { device: NodeDevice }) {
  if (device.unusable !== null) return <p className="siding-words danger-words">{device.unusable}</p>;
  if (device.job === null) return <p className="siding-words faint">free</p>;
  return (
    <Link to="/jobs/$jobId" params={{ jobId: device.job }} className="car">
      <span className="car-number">{device.job_number}</span>
      <span className="car-name">{device.job_name}</span>
      <span className="car-user">{device.user}</span>
    </Link>
  );
}

function Gauges({ device, telemetry }: { device: NodeDevice; telemetry: readonly Series[] }) {
  const { index, utilization, memory, memory_used: used } = device;
  const series = (what: string) => lastValues(telemetry, `gpu.${index}.${what}`, SPARK_SAMPLES);
  return (
    <div className="gauges">
      <Meter
        label="Load"
        share={utilization === null ? null : utilization / 100}
        words={utilization === null ? "–" : `${Math.round(utilization)} %`}
      />
      <Sparkline values={series("utilization")} top={100} />
      <Meter
        label="Memory"
        share={used === null ? null : used / memory}
        words={used === null ? bytes(memory) : `${bytes(used)} of ${bytes(memory)}`}
      />
      <Sparkline values={series("memory_used")} top={memory} />
    </div>
  );
}
