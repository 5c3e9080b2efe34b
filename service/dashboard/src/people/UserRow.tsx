import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";

import type { Quota, User } from "../api/types";
import { bytes, UNKNOWN } from "../lib/format";
import { labelOf, ROLES } from "../lib/people";
import { Ago } from "../ui/Ago";
import { useNow } from "../ui/useNow";
import { useResource } from "../ui/useResource";

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
  const { many } = useResource();
  return (
    <tr data-off={!active || undefined}>
      <th scope="row">
        {name} {own && <span className="badge"><Trans>you</Trans></span>} {!active && <span className="badge"><Trans context="user">blocked</Trans></span>}
      </th>
      <td data-label={t`Role`}>{labelOf(ROLES, user.role)}</td>
      <td data-label={t`UNIX account`}>
        {user.unix_user ?? UNKNOWN}
        {user.warning !== null && <span className="user-warning">{user.warning}</span>}
      </td>
      <td data-label={t`Last seen`}><LastSeen at={user.last_seen_at} /></td>
      <td data-label={t`${many} now`} className="num">{quota?.standing?.gpus ?? UNKNOWN}</td>
      <td data-label={t`Waiting`} className="num">{quota?.standing?.queued ?? UNKNOWN}</td>
      <td data-label={t`Storage`} className="num"><Storage quota={quota} /></td>
      <td className="row-actions"><Tasks user={user} own={own} onTask={onTask} /></td>
    </tr>
  );
}

function Tasks({ user: { name, active }, own, onTask }: Omit<Props, "quota">) {
  const button = (task: UserTask, label: string, words: string) => (
    <button type="button" className="button small ghost" aria-label={words} onClick={() => onTask(task)}>
      {label}
    </button>
  );
  return (
    <>
      {button("change", t`Change`, t`Change ${name}`)}
      {active && button("link", t`Sign-in link`, t`Make a sign-in link for ${name}`)}
      {!own && active && button("block", t`Block`, t`Block ${name}`)}
      {!own && !active && button("block", t`Let in`, t`Let in ${name}`)}
    </>
  );
}

function LastSeen({ at }: { at: string | null | undefined }) {
  const now = useNow(30_000);
  return at == null ? t`never` : <Ago at={at} now={now} />;
}

/** Bytes that somebody's jobs hold, of those that they may; and how much of it is code. */
export function Storage({ quota }: { quota: Quota | undefined }) {
  const used = quota?.standing?.storage;
  const most = quota?.effective.max_storage;
  const full = used !== undefined && typeof most === "number" && used >= most;
  return (
    <span className="quota-of" data-full={full || undefined}>
      <Used words={used === undefined ? UNKNOWN : bytes(used)} most={typeof most === "number" ? bytes(most) : null} />
      <Code size={quota?.standing?.code} />
    </span>
  );
}

function Used({ words, most }: { words: string; most: string | null }) {
  return most === null ? words : <Trans>{words}<span className="faint"> of {most}</span></Trans>;
}

function Code({ size = 0 }: { size?: number | undefined }) {
  const words = bytes(size);
  return size > 0 && <span className="faint" title={t`Snapshots of code, each counted once`}><Trans>, code {words}</Trans></span>;
}
