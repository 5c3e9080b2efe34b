import type { AuditEntry } from "../api/types";
import { Time } from "../ui/Time";

export function AuditTable({ entries }: { entries: readonly AuditEntry[] }) {
  return (
    <table className="plain-table stacking">
      <thead>
        <tr>
          <th scope="col">When</th>
          <th scope="col">User</th>
          <th scope="col">From</th>
          <th scope="col">Action</th>
          <th scope="col">Subject</th>
          <th scope="col">Result</th>
        </tr>
      </thead>
      <tbody>
        {entries.map((entry) => (
          <tr key={entry.id}>
            <td data-label="When"><Time at={entry.at} /></td>
            <td data-label="User">{entry.user}</td>
            <td data-label="From">{entry.address ?? ""}</td>
            <td data-label="Action">{entry.action}</td>
            <td data-label="Subject" className="audit-subject" title={details(entry)}>{entry.subject}</td>
            <td data-label="Result">{result(entry)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function result({ status, times }: AuditEntry): string {
  const words = status == null ? "done" : `refused (${status})`;
  return times > 1 ? `${words}, ${times} times` : words;
}

/** What else is known of a change, for whoever points at it. */
function details({ data }: AuditEntry): string | undefined {
  const given = Object.entries(data).map(([name, value]) => `${name}: ${JSON.stringify(value)}`);
  return given.length === 0 ? undefined : given.join("\n");
}
