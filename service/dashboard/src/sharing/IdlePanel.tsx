import { useIdle } from "../api/sharing";
import type { IdleDevices } from "../api/types";
import { Notice } from "../ui/Notice";
import { Panel } from "../ui/Panel";

/** Devices that no job has: for whom, until when, and the line that would let others be stopped. */
export function IdlePanel() {
  const found = useIdle();
  const idle = found.data ?? [];
  return (
    <Panel title="Idle now, and why" className="table-panel">
      <Notice error={found.error} />
      {found.data !== undefined && idle.length === 0 && <p className="soft pad">No device is idle.</p>}
      {idle.length > 0 && (
        <table className="plain-table stacking">
          <thead>
            <tr>
              <th scope="col">Node</th>
              <th scope="col">Devices</th>
              <th scope="col">Why</th>
            </tr>
          </thead>
          <tbody>{idle.map((one) => <Row key={`${one.node} ${one.code} ${one.devices.join()}`} idle={one} />)}</tbody>
        </table>
      )}
    </Panel>
  );
}

function Row({ idle }: { idle: IdleDevices }) {
  return (
    <tr>
      <th scope="row">{idle.node}</th>
      <td data-label="Devices">{idle.devices.join(", ")}</td>
      <td data-label="Why">{idle.message}</td>
    </tr>
  );
}
