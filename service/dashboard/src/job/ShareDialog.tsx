import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useState } from "react";

import { useRevokeLinks, useShare, useSharedLinks } from "../api/jobs";
import type { Job } from "../api/types";
import { Command } from "../ui/Command";
import { Dialog } from "../ui/Dialog";
import { Notice } from "../ui/Notice";
import { Select } from "../ui/Select";
import { Time } from "../ui/Time";

const LIFETIMES = [
  { key: "1d", label: t`a day` },
  { key: "7d", label: t`7 days` },
  { key: "30d", label: t`30 days` },
  { key: "90d", label: t`90 days` },
] as const;

/** Makes a public link to a job, and revokes those that there are. */
export function ShareDialog({ job, onClose }: { job: Job; onClose: () => void }) {
  const [lifetime, setLifetime] = useState<(typeof LIFETIMES)[number]["key"]>("7d");
  const share = useShare();
  const made = share.data;
  return (
    <Dialog
      title={t`Share job ${{ number: job.number }}`}
      confirm={made === undefined ? t`Make a link` : t`Done`}
      only={made !== undefined}
      busy={share.isPending}
      onConfirm={() => (made === undefined ? share.mutate({ id: job.id, lifetime }) : onClose())}
      onClose={onClose}
    >
      {made === undefined
        ? (
            <>
              <p>
                <Trans>
                  Whoever has the link sees name, owner, state, times and metrics of this job without signing in. They
                  see no code, command, log or error.
                </Trans>
              </p>
              <Select label={t`It counts for`} options={LIFETIMES} value={lifetime} onChange={setLifetime} />
            </>
          )
        : (
            <>
              <Command text={`${location.origin}/shared/${made.token}`} />
              <p><Trans>It counts until <Time at={made.expires_at} />. It is not shown again.</Trans></p>
            </>
          )}
      <Links job={job} onRevoked={share.reset} />
      <Notice error={share.error} />
    </Dialog>
  );
}

/** The links that count, which can only be revoked together. */
function Links({ job, onRevoked }: { job: Job; onRevoked: () => void }) {
  const links = useSharedLinks(job.id);
  const revoke = useRevokeLinks();
  const until = links.data?.expires_at ?? null;
  return (
    <>
      {until !== null && (
        <p className="soft">
          <Trans>There are links to this job, the last until <Time at={until} />.</Trans>{" "}
          <button
            type="button"
            className="button small danger"
            disabled={revoke.isPending}
            onClick={() => revoke.mutate(job.id, { onSuccess: onRevoked })}
          >
            <Trans>Revoke all</Trans>
          </button>
        </p>
      )}
      {until === null && revoke.isSuccess && (
        <p role="status"><Trans>No link to this job counts any more.</Trans></p>
      )}
      <Notice error={links.error ?? revoke.error} />
    </>
  );
}
