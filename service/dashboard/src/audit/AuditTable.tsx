import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";

import type { AuditEntry } from "../api/types";
import { Time } from "../ui/Time";

export function AuditTable({ entries }: { entries: readonly AuditEntry[] }) {
  return (
    <table className="plain-table stacking">
      <thead>
        <tr>
          <th scope="col"><Trans>When</Trans></th>
          <th scope="col"><Trans>User</Trans></th>
          <th scope="col"><Trans context="address">From</Trans></th>
          <th scope="col"><Trans>Action</Trans></th>
          <th scope="col"><Trans>Subject</Trans></th>
          <th scope="col"><Trans>Result</Trans></th>
        </tr>
      </thead>
      <tbody>
        {entries.map((entry) => (
          <tr key={entry.id}>
            <td data-label={t`When`}><Time at={entry.at} /></td>
            <td data-label={t`User`}>{entry.user}</td>
            <td data-label={t({ message: "From", context: "address" })}>{entry.address ?? ""}</td>
            <td data-label={t`Action`}>{entry.action}</td>
            <td data-label={t`Subject`} className="audit-subject" title={details(entry)}>{entry.subject}</td>
            <td data-label={t`Result`}>{result(entry)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function result({ status, times }: AuditEntry): string {
  const words = status == null ? t`done` : t`refused (${status})`;
  return times > 1 ? t`${words}, ${times} times` : words;
}

/** What else is known of a change, for whoever points at it. */
function details({ data }: AuditEntry): string | undefined {
  const given = Object.entries(data).map(([name, value]) => `${name}: ${JSON.stringify(value)}`);
  return given.length === 0 ? undefined : given.join("\n");
}
