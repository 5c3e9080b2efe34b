import { t } from "@lingui/core/macro";
import * as Radix from "@radix-ui/react-tabs";
import { useNavigate } from "@tanstack/react-router";
import { type ReactNode, useLayoutEffect, useRef } from "react";

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
  const strip = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => show(strip.current), [tab]);
  const go = (key: string) => void navigate(
    key === "overview"
      ? { to: "/jobs/$jobId", params: { jobId: job } }
      : { to: "/jobs/$jobId/$tab", params: { jobId: job, tab: key } },
  );
  return (
    <Radix.Root className="tabs" value={tab} onValueChange={go}>
      <Radix.List ref={strip} className="tab-list" aria-label={t`Parts of the job`}>
        {JOB_TABS.map(({ key, label }) => <Radix.Trigger key={key} value={key} className="tab">{label}</Radix.Trigger>)}
      </Radix.List>
      <Radix.Content value={tab} className="tab-content" tabIndex={-1}>{children}</Radix.Content>
    </Radix.Root>
  );
}

/** Scrolls the chosen tab to the middle of a strip that is wider than the page; the page itself stays where it is. */
function show(strip: HTMLDivElement | null): void {
  const chosen = strip?.querySelector("[data-state=active]")?.getBoundingClientRect();
  if (strip == null || chosen === undefined) return;
  const { left, width } = strip.getBoundingClientRect();
  strip.scrollLeft += chosen.left + chosen.width / 2 - (left + width / 2);
}
