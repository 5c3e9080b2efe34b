import { t } from "@lingui/core/macro";

import type { Group } from "../api/types";
import { values } from "../lib/trials";
import { Panel } from "../ui/Panel";

/** Where the values of each parameter come from. */
export function Parameters({ sweep }: { sweep: Group }) {
  const { parameters } = sweep.sweep as { parameters: Record<string, unknown> };
  return (
    <Panel title={t`Parameters`}>
      <dl className="parameters">
        {Object.entries(parameters).map(([name, form]) => (
          <div key={name}><dt><code>{name}</code></dt><dd>{values(form)}</dd></div>
        ))}
      </dl>
    </Panel>
  );
}
