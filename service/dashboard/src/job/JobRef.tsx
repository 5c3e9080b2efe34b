import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Link } from "@tanstack/react-router";

import { ApiError } from "../api/client";
import { useMentioned } from "../api/jobs";
import { duration } from "../lib/time";
import { StateChip } from "../ui/StateChip";

/** Another job: its number, name and owner, and how long it still runs where its steps tell. */
export function JobRef({ id }: { id: string }) {
  const { data: job, error } = useMentioned(id);
  if (error instanceof ApiError && error.status === 404) {
    return <span className="job-ref faint"><Trans>a job that is not shown</Trans></span>;
  }
  const left = job?.state === "running" ? job.progress?.eta_s : undefined;
  return (
    <Link to="/jobs/$jobId" params={{ jobId: job === undefined ? id : String(job.number) }} className="job-ref">
      {job === undefined
        ? <span className="car-name">…</span>
        : (
            <>
              <span className="car-number">{job.number}</span>
              <span className="car-name">{job.name}</span>
              <span className="car-user">{job.user}</span>
              {typeof left === "number"
                ? <span className="faint">{left < 60 ? t`soon over` : t`${{ time: duration(left) }} left`}</span>
                : <StateChip state={job.state} />}
            </>
          )}
    </Link>
  );
}
