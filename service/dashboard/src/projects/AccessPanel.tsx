import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";

import { useChangeProject } from "../api/people";
import type { Project } from "../api/types";
import { labelOf, READERS, RESTARTS, SUBMITTERS } from "../lib/people";
import { Notice } from "../ui/Notice";
import { Panel } from "../ui/Panel";
import { Select } from "../ui/Select";

/** Who reads the project's jobs and who submits to it; its administrators choose. */
export function AccessPanel({ project, leads }: { project: Project; leads: boolean }) {
  const { name, visibility, submitters } = project;
  const restarts = onOff(project.restarts);
  // One for each: while a choice is under way, another one does not end what is shown of it.
  const changes = { visibility: useChangeProject(), submitters: useChangeProject(), restarts: useChangeProject() };
  const all = Object.values(changes);
  const chosen = Object.assign(
    {}, ...all.map(({ isPending, variables }) => isPending && variables.changes),
  ) as Partial<Project>;
  if (!leads) {
    return (
      <Panel title={t`Access`}>
        <dl className="policy">
          <div><dt><Trans>Jobs are read by</Trans></dt><dd>{labelOf(READERS, visibility)}</dd></div>
          <div><dt><Trans>Who submits</Trans></dt><dd>{labelOf(SUBMITTERS, submitters)}</dd></div>
          <div><dt><Trans>Jobs start over</Trans></dt><dd>{labelOf(RESTARTS, restarts)}</dd></div>
        </dl>
      </Panel>
    );
  }
  return (
    <Panel title={t`Access`}>
      <div className="pad access">
        <Select
          label={t`Jobs are read by`}
          hint={t`Beside owners and administrators.`}
          options={READERS}
          value={chosen.visibility ?? visibility}
          onChange={(next) => changes.visibility.mutate({ name, changes: { visibility: next } })}
        />
        <Select
          label={t`Who submits`}
          hint={t`Reruns too. What was submitted before goes on.`}
          options={SUBMITTERS}
          value={chosen.submitters ?? submitters}
          onChange={(next) => changes.submitters.mutate({ name, changes: { submitters: next } })}
        />
        <Select
          label={t`Jobs start over`}
          hint={t`Those that cannot be stopped, at most twice, unless their specs decide.`}
          options={RESTARTS}
          value={chosen.restarts == null ? restarts : onOff(chosen.restarts)}
          onChange={(next) => changes.restarts.mutate({ name, changes: { restarts: next === "on" } })}
        />
        <Notice error={all.find(({ error }) => error !== null)?.error ?? null} />
      </div>
    </Panel>
  );
}

const onOff = (restarts: boolean) => (restarts ? "on" : "off");
