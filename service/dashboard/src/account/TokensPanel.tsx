import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useState } from "react";

import { useSettings } from "../api/session";
import type { Token } from "../api/types";
import { mayEndToken } from "../lib/rights";
import { Ago } from "../ui/Ago";
import { Panel } from "../ui/Panel";
import { Time } from "../ui/Time";
import { useNow } from "../ui/useNow";
import { NewTokenDialog } from "./NewTokenDialog";
import { RevokeDialog, RotateDialog } from "./TokenDialogs";

interface Props {
  title: string;
  tokens: readonly Token[] | undefined;
  /** The service account whose they are; null: the viewer. */
  user: string | null;
}

/** Tokens, without their secrets: made, rotated and revoked. */
export function TokensPanel({ title, tokens, user }: Props) {
  const viewer = useSettings().data;
  const [making, setMaking] = useState(false);
  const [rotated, setRotated] = useState<Token | null>(null);
  const [doomed, setDoomed] = useState<Token | null>(null);
  const tools = (
    <button
      type="button"
      className="button small"
      aria-label={user === null ? undefined : t`New token for ${user}`}
      onClick={() => setMaking(true)}
    >
      <Trans>New token</Trans>
    </button>
  );
  return (
    <Panel title={title} tools={tools} className="table-panel">
      {tokens?.length === 0 && <p className="soft pad"><Trans>There are no tokens. Programs use the box with one.</Trans></p>}
      {tokens !== undefined && tokens.length > 0 && (
        <table className="plain-table stacking">
          <thead>
            <tr>
              <th scope="col"><Trans>Name</Trans></th>
              <th scope="col"><Trans>May</Trans></th>
              <th scope="col"><Trans>Last used</Trans></th>
              <th scope="col"><Trans>Made</Trans></th>
              <th scope="col"><Trans>Ends</Trans></th>
              <th scope="col"><span className="hidden-words"><Trans>Change</Trans></span></th>
            </tr>
          </thead>
          <tbody>
            {tokens.map((token) => (
              <TokenRow
                key={token.id}
                token={token}
                {...(mayEndToken(viewer, token) && {
                  onRotate: () => setRotated(token),
                  onRevoke: () => setDoomed(token),
                })}
              />
            ))}
          </tbody>
        </table>
      )}
      {making && <NewTokenDialog user={user} onClose={() => setMaking(false)} />}
      {rotated !== null && <RotateDialog token={rotated} onClose={() => setRotated(null)} />}
      {doomed !== null && <RevokeDialog token={doomed} onClose={() => setDoomed(null)} />}
    </Panel>
  );
}

interface RowProps {
  token: Token;
  onRotate?: () => void;
  onRevoke?: () => void;
}

function TokenRow({ token, onRotate, onRevoke }: RowProps) {
  const now = useNow(30_000);
  const { name, session, last_used_at: used, created_at: made, expires_at: ends, node } = token;
  return (
    <tr>
      <th scope="row" title={token.id}>{name} {session && <span className="badge"><Trans>browser</Trans></span>}</th>
      <td data-label={t`May`}>{node === null ? token.scopes.join(", ") : t`node ${node}`}</td>
      <td data-label={t`Last used`}>
        {used === null ? t`never` : <Ago at={used} now={now} />}
      </td>
      <td data-label={t`Made`}><Time at={made} near={now} /></td>
      <td data-label={t`Ends`}>{ends === null ? t({ message: "never", context: "ends" }) : <Time at={ends} near={now} />}</td>
      <td className="row-actions">
        {onRotate !== undefined && !session && (
          <button type="button" className="button small ghost" aria-label={t`Rotate ${name}`} onClick={onRotate}><Trans>Rotate</Trans></button>
        )}
        {onRevoke !== undefined && (
          <button
            type="button"
            className="button small ghost"
            aria-label={session ? t`Sign out ${name}` : t`Revoke ${name}`}
            onClick={onRevoke}
          >
            {session ? <Trans>Sign out</Trans> : <Trans>Revoke</Trans>}
          </button>
        )}
      </td>
    </tr>
  );
}
