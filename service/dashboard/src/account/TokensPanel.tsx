import { useState } from "react";

import { useSettings } from "../api/session";
import type { Token } from "../api/types";
import { mayEndToken } from "../lib/rights";
import { age, secondsBetween } from "../lib/time";
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
      aria-label={user === null ? undefined : `New token for ${user}`}
      onClick={() => setMaking(true)}
    >
      New token
    </button>
  );
  return (
    <Panel title={title} tools={tools} className="table-panel">
      {tokens?.length === 0 && <p className="soft pad">There are no tokens. Programs use the box with one.</p>}
      {tokens !== undefined && tokens.length > 0 && (
        <table className="plain-table stacking">
          <thead>
            <tr>
              <th scope="col">Name</th>
              <th scope="col">May</th>
              <th scope="col">Last used</th>
              <th scope="col">Made</th>
              <th scope="col">Ends</th>
              <th scope="col"><span className="hidden-words">Change</span></th>
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
      <th scope="row" title={token.id}>{name} {session && <span className="badge">browser</span>}</th>
      <td data-label="May">{node === null ? token.scopes.join(", ") : `node ${node}`}</td>
      <td data-label="Last used">
        {used === null ? "never" : <Time at={used}>{`${age(secondsBetween(used, null, now))} ago`}</Time>}
      </td>
      <td data-label="Made"><Time at={made} near={now} /></td>
      <td data-label="Ends">{ends === null ? "never" : <Time at={ends} near={now} />}</td>
      <td className="row-actions">
        {onRotate !== undefined && !session && (
          <button type="button" className="button small ghost" aria-label={`Rotate ${name}`} onClick={onRotate}>Rotate</button>
        )}
        {onRevoke !== undefined && (
          <button
            type="button"
            className="button small ghost"
            aria-label={`${session ? "Sign out" : "Revoke"} ${name}`}
            onClick={onRevoke}
          >
            {session ? "Sign out" : "Revoke"}
          </button>
        )}
      </td>
    </tr>
  );
}
