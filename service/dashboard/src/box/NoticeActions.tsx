import { Trans } from "@lingui/react/macro";
import { useState } from "react";

import { useNotices, useResumeQueue, useWithdraw } from "../api/notices";
import { Notice } from "../ui/Notice";
import { AnnounceDialog } from "./AnnounceDialog";
import { PauseDialog } from "./PauseDialog";

/** An administrator's hand on the whole queue, and their word to everybody. */
export function NoticeActions() {
  const { pause, announcement } = useNotices().data ?? {};
  const [resume, withdraw] = [useResumeQueue(), useWithdraw()];
  const [asked, setAsked] = useState<"pause" | "announce" | null>(null);
  return (
    <div className="notice-actions">
      <Notice error={resume.error ?? withdraw.error} />
      {pause == null && (
        <button type="button" className="button small" onClick={() => setAsked("pause")}><Trans>Pause the queue</Trans></button>
      )}
      {pause != null && (
        <button type="button" className="button small" disabled={resume.isPending} onClick={() => resume.mutate(undefined)}>
          <Trans>Resume the queue</Trans>
        </button>
      )}
      <button type="button" className="button small" onClick={() => setAsked("announce")}>
        {announcement == null ? <Trans>Announce</Trans> : <Trans>Change the announcement</Trans>}
      </button>
      {announcement != null && (
        <button
          type="button"
          className="button small"
          disabled={withdraw.isPending}
          onClick={() => withdraw.mutate(undefined)}
        >
          <Trans>Withdraw it</Trans>
        </button>
      )}
      {asked === "pause" && <PauseDialog onClose={() => setAsked(null)} />}
      {asked === "announce" && <AnnounceDialog before={announcement ?? null} onClose={() => setAsked(null)} />}
    </div>
  );
}
