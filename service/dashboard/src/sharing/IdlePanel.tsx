import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";

import { useIdle } from "../api/sharing";
import type { IdleDevices } from "../api/types";
import { idleWords } from "../lib/idle";
import { Message } from "../ui/Message";
import { Notice } from "../ui/Notice";
import { Panel } from "../ui/Panel";
import { useNow } from "../ui/useNow";

/** Devices that no job has: for whom, until when, and the line that would let others be stopped. */
export function IdlePanel() {
  const found = useIdle();
  const idle = found.data ?? [];
  const now = useNow(30_000);
  return (
    <Panel title={t`Idle now, and why`} className="table-panel">
      <Notice error={found.error} />
      {found.data !== undefined && idle.length === 0 && <p className="soft pad"><Trans>No device is idle.</Trans></p>}
      {idle.length > 0 && (
        <table className="plain-table stacking">
          <thead>
            <tr>
              <th scope="col"><Trans>Node</Trans></th>
              <th scope="col"><Trans>Devices</Trans></th>
              <th scope="col"><Trans>Why</Trans></th>
            </tr>
          </thead>
          <tbody>{idle.map((one) => <Row key={`${one.node} ${one.code} ${one.devices.join()}`} idle={one} now={now} />)}</tbody>
        </table>
      )}
    </Panel>
  );
}

function Row({ idle, now }: { idle: IdleDevices; now: number }) {
  return (
    <tr>
      <th scope="row">{idle.node}</th>
      <td data-label={t`Devices`}>{idle.devices.join(", ")}</td>
      <td data-label={t`Why`}><span className="cell-words"><Message text={idleWords(idle)} now={now} /></span></td>
    </tr>
  );
}
