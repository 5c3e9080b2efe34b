import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useMatchRoute, useNavigate } from "@tanstack/react-router";
import { Command } from "cmdk";
import { type KeyboardEvent, useEffect, useEffectEvent, useRef, useState } from "react";

import { client, unwrap } from "../api/client";
import { useCancel, useCheckpointNow, useDumpStacks, useHold, useJob, useRelease } from "../api/jobs";
import { mayAdminister, useSettings } from "../api/session";
import type { Job } from "../api/types";
import { maySubmitAnywhere } from "../lib/rights";
import { type Action, actionsFor } from "../lib/states";
import { useTheme } from "../lib/theme";
import { Notice } from "../ui/Notice";
import { pagesOf } from "../ui/pages";
import { StateChip } from "../ui/StateChip";
import { useSettled } from "../ui/useSettled";
import { isEnter } from "./keys";
import { hasWords } from "./words";

const SETTLE_MS = 150;
const MOST_JOBS = 8;

export interface Props {
  /** What is searched for, as it was typed. */
  words: string;
  onWords: (words: string) => void;
  /** The words at which Enter was pressed too early. */
  entered: string | null;
  onEntered: (words: string | null) => void;
  onClose: () => void;
  onHelp: () => void;
}

/** Jobs, pages and actions by name; arrows choose, Enter does it. */
export default function Palette(props: Props) {
  const { words, onWords, onClose, onHelp } = props;
  const found = useFound(words.trim());
  const ahead = useEnterAhead(props, found);
  const matches = useMatchRoute();
  const here = matches({ to: "/jobs/$jobId", fuzzy: true });
  const jobId = here === false ? null : here.jobId;
  return (
    <Command label={t`Commands`} loop filter={hasWords} {...ahead}>
      <Command.Input
        // Where it takes the place of the field that was there while this was loaded.
        autoFocus
        value={words}
        onValueChange={onWords}
        placeholder={t`A job’s number or name, a page, an action`}
      />
      <Command.List>
        <Notice error={found.error} />
        <Command.Empty>
          {found.isComing ? <Trans>Searching…</Trans> : <Trans>Nothing has this name.</Trans>}
        </Command.Empty>
        {jobId != null && <OfJob id={jobId} onDone={onClose} />}
        <Jobs found={found} onDone={onClose} />
        <Pages onDone={onClose} onHelp={onHelp} />
      </Command.List>
    </Command>
  );
}

interface Found {
  /** What was searched for. */
  q: string;
  jobs: readonly Job[];
  error: unknown;
  /** Whether what was typed is not answered yet. */
  isComing: boolean;
}

/** Jobs with some words in their names, or of that number. */
function useFound(words: string): Found {
  const q = useSettled(words, SETTLE_MS) ?? "";
  const { data, error, isFetching, isPlaceholderData } = useQuery({
    queryKey: ["jobs", "palette", q],
    queryFn: () => unwrap(client.GET("/api/v1/jobs", { params: { query: { q, limit: MOST_JOBS } } })),
    enabled: q !== "",
    // What was found stays, as far as it has the new words too, so that Enter opens what is seen.
    placeholderData: keepPreviousData,
  });
  const isUnanswered = isFetching && (data === undefined || isPlaceholderData);
  return { q, jobs: q === "" ? [] : (data?.items ?? []), error, isComing: q !== words || isUnanswered };
}

/** Do what is selected once all is found, where Enter was pressed before; returns what takes the key, and where. */
function useEnterAhead({ words, entered, onEntered, onClose }: Props, { jobs, isComing }: Found) {
  const ref = useRef<HTMLDivElement>(null);
  const openJob = useOpenJob(onClose);
  const act = useEffectEvent(() => {
    onEntered(null);
    if (entered !== words) return;
    const selected = selectedIn(ref.current);
    if (selected !== null) selected.click();
    // What has just been found may not be selected yet.
    else if (jobs[0] !== undefined) openJob(jobs[0]);
  });
  useEffect(() => {
    if (entered === null || (entered === words && isComing)) return;
    // What was found is selected in a render of its own.
    const timer = setTimeout(() => act());
    return () => clearTimeout(timer);
  }, [words, entered, isComing]);
  const onKeyDown = (press: KeyboardEvent) => {
    if (isEnter(press) && isComing && selectedIn(ref.current) === null) onEntered(words);
  };
  return { ref, onKeyDown };
}

function useOpenJob(onDone: () => void): (job: Job) => void {
  const navigate = useNavigate();
  return ({ number }) => {
    onDone();
    void navigate({ to: "/jobs/$jobId", params: { jobId: String(number) } });
  };
}

function selectedIn(list: HTMLElement | null): HTMLElement | null {
  return list?.querySelector<HTMLElement>("[cmdk-item][aria-selected=true]") ?? null;
}

function Jobs({ found: { q, jobs }, onDone }: { found: Found; onDone: () => void }) {
  const openJob = useOpenJob(onDone);
  if (jobs.length === 0) return null;
  return (
    <Command.Group heading={t`Jobs`}>
      {jobs.map((job) => (
        <Command.Item
          key={job.id}
          // The service has found it, by its number perhaps, so nothing else decides.
          value={`${job.number} ${job.name} ${job.id}`}
          keywords={[q]}
          onSelect={() => openJob(job)}
        >
          <span className="num faint">{job.number}</span> <span className="palette-name">{job.name}</span>
          <span className="faint">{job.user}</span> <StateChip state={job.state} held={job.held} blocked={job.blocked} />
        </Command.Item>
      ))}
    </Command.Group>
  );
}

function OfJob({ id, onDone }: { id: string; onDone: () => void }) {
  const { data: job } = useJob(id);
  return job === undefined ? null : <Actions job={job} onDone={onDone} />;
}

function Actions({ job, onDone }: { job: Job; onDone: () => void }) {
  const { number, name } = job;
  const navigate = useNavigate();
  const allowed = actionsFor(job, useSettings().data);
  const [sure, setSure] = useState(false);
  const changes = {
    hold: useHold(),
    release: useRelease(),
    checkpoint: useCheckpointNow(),
    stacks: useDumpStacks(),
    cancel: useCancel(),
  };
  const all = Object.values(changes);
  const error = all.map((change) => change.error).find((one) => one !== null);
  const busy = all.some((change) => change.isPending);
  const item = (action: keyof typeof changes & Action, label: string) => allowed.has(action) && (
    <Command.Item key={action} disabled={busy} onSelect={() => changes[action].mutate(job.id, { onSuccess: onDone })}>
      {label}
    </Command.Item>
  );
  const tab = (to: string, label: string) => (
    <Command.Item
      onSelect={() => {
        onDone();
        void navigate({ to: "/jobs/$jobId/$tab", params: { jobId: String(number), tab: to } });
      }}
    >
      {label}
    </Command.Item>
  );
  return (
    <Command.Group heading={t`Job ${number} ${name}`}>
      <Notice error={error} />
      {tab("charts", t`Charts of this job`)}
      {tab("log", t`Log of this job`)}
      {tab("spec", t`Spec of this job`)}
      <Command.Item
        onSelect={() => {
          onDone();
          void navigate({ to: "/compare", search: { jobs: String(number) } });
        }}
      >
        <Trans>Compare this job with others</Trans>
      </Command.Item>
      {allowed.has("rerun") && (
        <Command.Item
          onSelect={() => {
            onDone();
            void navigate({ to: "/submit", search: { from: number } });
          }}
        >
          <Trans>Rerun this job with edits</Trans>
        </Command.Item>
      )}
      {item("checkpoint", t`Write a checkpoint now`)}
      {item("stacks", t`Dump stacks`)}
      {item("hold", t`Hold this job`)}
      {item("release", t`Release this job`)}
      {allowed.has("cancel") && !sure && (
        <Command.Item onSelect={() => setSure(true)}><Trans>Cancel this job…</Trans></Command.Item>
      )}
      {sure && item("cancel", t`Cancel job ${number} for good`)}
    </Command.Group>
  );
}

/** Pages that the bar at the top does not name. */
const PAGES = [
  { to: "/calendar", label: t`Calendar` }, { to: "/compare", label: t`Compare runs` },
  { to: "/account", label: t`Your account` },
] as const;

function Pages({ onDone, onHelp }: { onDone: () => void; onHelp: () => void }) {
  const navigate = useNavigate();
  const [theme, toggle] = useTheme();
  const settings = useSettings().data;
  const pages = [
    ...pagesOf(mayAdminister(settings)),
    ...PAGES,
    ...(maySubmitAnywhere(settings) ? [{ to: "/submit", label: t`Submit a job` } as const] : []),
  ];
  return (
    <Command.Group heading={t`Pages`}>
      {pages.map(({ to, label }) => (
        <Command.Item
          key={to}
          onSelect={() => {
            onDone();
            void navigate({ to, search: {} });
          }}
        >
          {label}
        </Command.Item>
      ))}
      <Command.Item onSelect={toggle}>{theme === "dark" ? t`Use the light theme` : t`Use the dark theme`}</Command.Item>
      <Command.Item onSelect={onHelp}><Trans>Keys</Trans></Command.Item>
    </Command.Group>
  );
}
