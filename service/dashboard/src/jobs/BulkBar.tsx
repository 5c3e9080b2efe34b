import { useState } from "react";

import { mayAdminister, useSettings } from "../api/session";
import { ACTS, useBulk } from "../api/table";
import type { Job } from "../api/types";
import { words } from "../lib/bulk";
import { plural } from "../lib/format";
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
      undo: undo === null || done.length === 0 ? null : () => void run(done, undo, "taken back"),
    });
  };
  return (
    <>
      <div className="bulk" role="group" aria-label="Ticked jobs" hidden={jobs.length === 0}>
        <b>{plural(jobs.length, "job")} ticked</b>
        {cancellable.length > 0 && (
          <button type="button" className="button small danger" disabled={bulk.isPending} onClick={() => setAsked("cancel")}>
            Cancel {cancellable.length}
          </button>
        )}
        {runnable.length > 0 && (
          <button
            type="button"
            className="button small"
            disabled={bulk.isPending}
            onClick={() => void run(runnable, ACTS.rerun, "submitted again", ACTS.cancel)}
          >
            Rerun {runnable.length}
          </button>
        )}
        {own.length > 0 && (
          <button type="button" className="button small" disabled={bulk.isPending} onClick={() => setAsked("tag")}>
            Tag {own.length}
          </button>
        )}
        {alive.length > 0 && (
          <select
            aria-label={`Priority of ${plural(alive.length, "job")}`}
            disabled={bulk.isPending}
            value=""
            onChange={({ target }) => {
              const priority = priorities.find((one) => one === target.value);
              if (priority !== undefined) void run(alive, ACTS.priority(priority), `now ${priority}`, ACTS.restore("priority"));
            }}
          >
            <option value="">Priority…</option>
            {priorities.map((one) => <option key={one} value={one}>{one}</option>)}
          </select>
        )}
        {jobs.length > 1 && (
          <a className="button small" href={`/compare?jobs=${jobs.map(({ number }) => number).join(",")}`}>Compare</a>
        )}
        <button type="button" className="button small ghost" onClick={onClear}>Untick all</button>
      </div>
      <div role="status" className="bulk-told">
        {told !== null && (
          <p>
            {told.text}
            {told.undo !== null && (
              <button type="button" className="button small" disabled={bulk.isPending} onClick={told.undo}>Undo</button>
            )}
            <button type="button" className="button small ghost" onClick={() => setTold(null)}>Close</button>
          </p>
        )}
      </div>
      {asked === "cancel" && (
        <Dialog
          title={`Cancel ${plural(cancellable.length, "job")}?`}
          confirm={`Cancel ${plural(cancellable.length, "job")}`}
          danger
          onConfirm={() => {
            setAsked(null);
            void run(cancellable, ACTS.cancel, "cancelled");
          }}
          onClose={() => setAsked(null)}
        >
          <p>Those that run save their work first. It cannot be undone, but a cancelled job can be run again.</p>
        </Dialog>
      )}
      {asked === "tag" && (
        <Dialog
          title={`Tag ${plural(own.length, "job")}`}
          confirm="Add the tag"
          onConfirm={() => {
            setAsked(null);
            void run(own, ACTS.tag(tag.trim()), `tagged ${tag.trim()}`, ACTS.restore("tags"));
          }}
          onClose={() => setAsked(null)}
        >
          <Field label="Tag" required maxLength={100} value={tag} onChange={setTag} />
        </Dialog>
      )}
    </>
  );
}
