import { plural, t } from "@lingui/core/macro";
import { Plural, Trans } from "@lingui/react/macro";
import { useState } from "react";

import { mayAdminister, useSettings } from "../api/session";
import { ACTS, useBulk } from "../api/table";
import type { Job } from "../api/types";
import { words } from "../lib/bulk";
import { priorityLabel } from "../lib/priorities";
import { mayChange, prioritiesOf } from "../lib/rights";
import { actionsFor, isFinal } from "../lib/states";
import { Dialog } from "../ui/Dialog";
import { Field } from "../ui/Field";

type Act = (job: Job) => Promise<Job>;
type Asked = "cancel" | "tag" | null;

/** What was done, and how it is taken back. */
interface Told {
  text: string;
  undo: (() => void) | null;
}

/** What can be done to the ticked jobs: to those of them that the viewer may change in their states. */
export function BulkBar({ jobs, onClear }: { jobs: readonly Job[]; onClear: () => void }) {
  const viewer = useSettings().data;
  const bulk = useBulk();
  const [asked, setAsked] = useState<Asked>(null);
  const [tag, setTag] = useState("");
  const [told, setTold] = useState<Told | null>(null);
  const cancellable = jobs.filter((job) => actionsFor(job, viewer).has("cancel"));
  const runnable = jobs.filter((job) => actionsFor(job, viewer).has("rerun"));
  const own = jobs.filter((job) => mayChange(viewer, job));
  const alive = own.filter(({ state }) => !isFinal(state));
  const priorities = prioritiesOf(mayAdminister(viewer));

  /** Does it, tells of it, and offers to do the opposite to what was done. */
  const run = async (some: readonly Job[], act: Act, verb: string, undo: Act | null = null) => {
    const outcome = await bulk.mutateAsync({ jobs: some, act });
    const { done } = outcome;
    setTold({
      text: words(outcome, verb),
      undo: undo === null || done.length === 0 ? null : () => void run(done, undo, t`taken back`),
    });
  };
  return (
    <>
      <div className="bulk" role="group" aria-label={t`Ticked jobs`} hidden={jobs.length === 0}>
        <b><Plural value={{ count: jobs.length }} one="# job ticked" other="# jobs ticked" /></b>
        {cancellable.length > 0 && (
          <button type="button" className="button small danger" disabled={bulk.isPending} onClick={() => setAsked("cancel")}>
            <Trans>Cancel {{ count: cancellable.length }}</Trans>
          </button>
        )}
        {runnable.length > 0 && (
          <button
            type="button"
            className="button small"
            disabled={bulk.isPending}
            onClick={() => void run(runnable, ACTS.rerun, t`submitted again`, ACTS.cancel)}
          >
            <Trans>Rerun {{ count: runnable.length }}</Trans>
          </button>
        )}
        {own.length > 0 && (
          <button type="button" className="button small" disabled={bulk.isPending} onClick={() => setAsked("tag")}>
            <Trans>Tag {{ count: own.length }}</Trans>
          </button>
        )}
        {alive.length > 0 && (
          <select
            aria-label={plural({ count: alive.length }, { one: "Priority of # job", other: "Priority of # jobs" })}
            disabled={bulk.isPending}
            value=""
            onChange={({ target }) => {
              const priority = priorities.find((one) => one === target.value);
              if (priority === undefined) return;
              void run(alive, ACTS.priority(priority), t`now ${{ priority: priorityLabel(priority) }}`, ACTS.restore("priority"));
            }}
          >
            <option value=""><Trans>Priority…</Trans></option>
            {priorities.map((one) => <option key={one} value={one}>{priorityLabel(one)}</option>)}
          </select>
        )}
        {jobs.length > 1 && (
          <a className="button small" href={`/compare?jobs=${jobs.map(({ number }) => number).join(",")}`}>
            <Trans>Compare</Trans>
          </a>
        )}
        <button type="button" className="button small ghost" onClick={onClear}><Trans>Untick all</Trans></button>
      </div>
      <div role="status" className="bulk-told">
        {told !== null && (
          <p>
            {told.text}
            {told.undo !== null && (
              <button type="button" className="button small" disabled={bulk.isPending} onClick={told.undo}>
                <Trans>Undo</Trans>
              </button>
            )}
            <button type="button" className="button small ghost" onClick={() => setTold(null)}>
              <Trans>Close</Trans>
            </button>
          </p>
        )}
      </div>
      {asked === "cancel" && (
        <Dialog
          title={plural({ count: cancellable.length }, { one: "Cancel # job?", other: "Cancel # jobs?" })}
          confirm={plural({ count: cancellable.length }, { one: "Cancel # job", other: "Cancel # jobs" })}
          danger
          onConfirm={() => {
            setAsked(null);
            void run(cancellable, ACTS.cancel, t`cancelled`);
          }}
          onClose={() => setAsked(null)}
        >
          <p>
            <Trans>
              Those that run save their work first. It cannot be undone, but a cancelled job can be run again.
            </Trans>
          </p>
        </Dialog>
      )}
      {asked === "tag" && (
        <Dialog
          title={plural({ count: own.length }, { one: "Tag # job", other: "Tag # jobs" })}
          confirm={t`Add the tag`}
          onConfirm={() => {
            setAsked(null);
            void run(own, ACTS.tag(tag.trim()), t`tagged ${{ tag: tag.trim() }}`, ACTS.restore("tags"));
          }}
          onClose={() => setAsked(null)}
        >
          <Field label={t`Tag`} required maxLength={100} value={tag} onChange={setTag} />
        </Dialog>
      )}
    </>
  );
}
