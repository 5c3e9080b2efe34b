import { t } from "@lingui/core/macro";
import * as Radix from "@radix-ui/react-tabs";
import { useNavigate } from "@tanstack/react-router";
import type { ReactNode } from "react";

import { JOB_TABS, type JobTab } from "../lib/jobTabs";

interface Props {
  /** Number or id of the job, as the address has it. */
  job: string;
  tab: JobTab;
  children: ReactNode;
}

/** The tabs of a job's page, each with an address of its own; `children` is what the chosen one shows. */
export function Tabs({ job, tab, children }: Props) {
  const navigate = useNavigate();
  const go = (key: string) => void navigate(
    key === "overview"
      ? { to: "/jobs/$jobId", params: { jobId: job } }
      : { to: "/jobs/$jobId/$tab", params: { jobId: job, tab: key } },
  );
  return (
    <Radix.Root className="tabs" value={tab} onValueChange={go}>
      <Radix.List className="tab-list" aria-label={t`Parts of the job`}>
        {JOB_TABS.map(({ key, label }) => <Radix.Trigger key={key} value={key} className="tab">{label}</Radix.Trigger>)}
      </Radix.List>
      <Radix.Content value={tab} className="tab-content" tabIndex={-1}>{children}</Radix.Content>
    </Radix.Root>
  );
}
