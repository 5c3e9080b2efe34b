import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useParams } from "@tanstack/react-router";
import type { ReactNode } from "react";

import { isNotThere, metricsOfShared, useSharedRun } from "../api/shared";
import type { SharedRun } from "../api/types";
import { HighlightCards } from "../job/Highlights";
import { MetricCharts } from "../job/Metrics";
import { useChartSettings } from "../job/useChartSettings";
import { metric } from "../lib/format";
import { headline } from "../lib/headline";
import { ran } from "../lib/ran";
import { Notice } from "../ui/Notice";
import { StateChip } from "../ui/StateChip";
import { ThemeToggle } from "../ui/ThemeToggle";
import { Time } from "../ui/Time";
import { Track } from "../ui/Track";
import { useNow } from "../ui/useNow";
import { useTitle } from "../ui/useTitle";

/** One run for whoever has a public link to it: to look at, without a way to anything else. */
export function SharedPage() {
  const { token } = useParams({ from: "/shared/$token" });
  const { data: run, error } = useSharedRun(token);
  useTitle(run?.name);
  if (isNotThere(error)) return <Gone />;
  return (
    <Bare>
      <Notice error={error} />
      {run !== undefined && <Run token={token} run={run} />}
    </Bare>
  );
}

function Bare({ children }: { children: ReactNode }) {
  return (
    <>
      <header className="top">
        <span className="brand"><img src="/mark.svg" alt="" width="28" height="28" /><span>TorchYard</span></span>
        <div className="person"><ThemeToggle /></div>
      </header>
      <main id="content" className="page">{children}</main>
    </>
  );
}

function Gone() {
  return (
    <Bare>
      <div className="empty">
        <h1><Trans>This link shows nothing (any more)</Trans></h1>
        <p><Trans>It has expired, was revoked, or is not complete. Ask whoever gave it to you for a new one.</Trans></p>
      </div>
    </Bare>
  );
}

function Run({ token, run }: { token: string; run: SharedRun }) {
  const [settings, change] = useChartSettings("/shared/$token");
  const source = metricsOfShared(token, run);
  return (
    <div className="job-page">
      <header className="job-head">
        <div className="job-title">
          <h1>{run.name}</h1>
          <StateChip state={run.state} />
        </div>
        {run.progress !== null && <Track progress={run.progress} moving={run.state === "running"} />}
        <Facts run={run} />
      </header>
      <HighlightCards source={source}>
        {(content, name) => <div key={name} className="highlight">{content}</div>}
      </HighlightCards>
      <MetricCharts source={source} settings={settings} onChange={change} />
    </div>
  );
}

function Facts({ run }: { run: SharedRun }) {
  const now = useNow();
  return (
    <dl className="facts">
      <Fact name={t({ message: "By", context: "owner" })}>{run.owner}</Fact>
      <Fact name={t`Submitted`}><Time at={run.created_at} /></Fact>
      {run.started_at !== null && <Fact name={t`Started`}><Time at={run.started_at} /></Fact>}
      {run.started_at !== null && (
        <Fact name={t`Ran`}>{ran(run, now)}</Fact>
      )}
      {run.ended_at !== null && <Fact name={t`Ended`}><Time at={run.ended_at} /></Fact>}
      {headline(run.latest).map(([name, value]) => <Fact key={name} name={name}>{metric(value)}</Fact>)}
    </dl>
  );
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return <div><dt>{name}</dt><dd>{children}</dd></div>;
}
