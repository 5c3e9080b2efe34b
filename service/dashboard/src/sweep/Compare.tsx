import { t } from "@lingui/core/macro";

import type { Measure } from "../api/sweeps";
import { likelyMode, type Mode } from "../lib/trials";
import { Segments } from "../ui/Segments";

const MODES = [{ key: "min", label: t`Low is good` }, { key: "max", label: t`High is good` }] as const;

interface Props {
  metrics: readonly string[];
  metric: string;
  mode: Mode;
  onChange: (measure: Measure) => void;
}

/** What trials are compared by. */
export function Compare({ metrics, metric, mode, onChange }: Props) {
  const known = metrics.includes(metric) ? metrics : [metric, ...metrics];
  return (
    <>
      <select
        aria-label={t`Metric`}
        value={metric}
        onChange={({ target }) => onChange({ metric: target.value, mode: likelyMode(target.value) })}
      >
        {known.map((name) => <option key={name}>{name}</option>)}
      </select>
      <Segments
        label={t`Good values`}
        options={MODES}
        value={mode}
        onChange={(key) => onChange({ metric, mode: key })}
      />
    </>
  );
}
