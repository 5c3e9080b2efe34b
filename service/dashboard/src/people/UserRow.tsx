import type { Quota, User } from "../api/types";
import { bytes, UNKNOWN } from "../lib/format";
import { age, secondsBetween } from "../lib/time";
import { Time } from "../ui/Time";
import { useNow } from "../ui/useNow";

export type UserTask = "change" | "link" | "block";

interface Props {
  user: User;
  quota: Quota | undefined;
  /** It is the viewer, who does not block themselves. */
  own: boolean;
  onTask: (task: UserTask) => void;
}

export function UserRow({ user, quota, own, onTask }: Props) {
  const { name, active } = user;
  return (
    <tr data-off={!active || undefined}>
      <th scope="row">
        {name} {own && <span className="badge">you</span>} {!active && <span className="badge">blocked</span>}
      </th>
      <td data-label="Role">{user.role}</td>
      <td data-label="UNIX account">
        {user.unix_user ?? UNKNOWN}
        {user.warning !== null && <span className="user-warning">{user.warning}</span>}
      </td>
      <td data-label="Last seen"><LastSeen at={user.last_seen_at} /></td>
      <td data-label="Now" className="num">{quota?.standing?.gpus ?? UNKNOWN}</td>
      <td data-label="Waiting" className="num">{quota?.standing?.queued ?? UNKNOWN}</td>
      <td data-label="Storage" className="num"><Storage quota={quota} /></td>
      <td className="row-actions"><Tasks user={user} own={own} onTask={onTask} /></td>
    </tr>
  );
}

function Tasks({ user: { name, active }, own, onTask }: Omit<Props, "quota">) {
  const button = (task: UserTask, label: string, words: string) => (
    <button type="button" className="button small ghost" aria-label={`${words} ${name}`} onClick={() => onTask(task)}>
      {label}
    </button>
  );
  const block = active ? "Block" : "Let in";
  return (
    <>
      {button("change", "Change", "Change")}
      {active && button("link", "Sign-in link", "Make a sign-in link for")}
      {!own && button("block", block, block)}
    </>
  );
}

function LastSeen({ at }: { at: string | null | undefined }) {
  const now = useNow(30_000);
  return at == null ? "never" : <Time at={at}>{`${age(secondsBetween(at, null, now))} ago`}</Time>;
}

/** Bytes that somebody's jobs hold, of those that they may; and how much of it is code. */
export function Storage({ quota }: { quota: Quota | undefined }) {
  const used = quota?.standing?.storage;
  const most = quota?.effective.max_storage;
  const full = used !== undefined && typeof most === "number" && used >= most;
  return (
    <span className="quota-of" data-full={full || undefined}>
      {used === undefined ? UNKNOWN : bytes(used)}
      {typeof most === "number" && <span className="faint"> of {bytes(most)}</span>}
      <Code size={quota?.standing?.code} />
    </span>
  );
}

function Code({ size = 0 }: { size?: number | undefined }) {
  return size > 0 && <span className="faint" title="Snapshots of code, each counted once">, code {bytes(size)}</span>;
}
