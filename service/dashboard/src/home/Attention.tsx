import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Link } from "@tanstack/react-router";

import { useAttention } from "../api/box";
import type { Attention as Item } from "../api/types";
import { attentionWords } from "../lib/attention";
import { shownName } from "../lib/jobWords";
import { age, secondsBetween } from "../lib/time";
import { Message } from "../ui/Message";
import { Notice } from "../ui/Notice";
import { Panel } from "../ui/Panel";
import { Time } from "../ui/Time";
import { useNow } from "../ui/useNow";

const WORDS: Record<Item["kind"], string> = {
  failed: t`failed`,
  hung: t`hangs`,
  nan: t`not finite`,
  idle: t`idle`,
  "node-silent": t`silent`,
  "disk-low": t`disk low`,
  "device-unusable": t`out of use`,
  offender: t`not allotted`,
};

/** What goes wrong on the box, and what of the viewer's own has gone wrong. */
export function Attention() {
  const now = useNow(30_000);
  const found = useAttention();
  const items = found.data ?? [];
  return (
    <Panel title={t`Needs attention`} className="attention">
      <Notice error={found.error} />
      {found.data !== undefined && items.length === 0 && (
        <p className="soft pad">
          <Trans>
            Nothing. Runs that hang, fail, report nan or do nothing with what they hold would stand here, and nodes that
            are silent or out of disk.
          </Trans>
        </p>
      )}
      <ul className="home-list">
        {items.map((item) => (
          <li key={keyOf(item)} data-kind={item.kind}>
            <span className="attention-kind">{WORDS[item.kind]}</span>
            <div>
              <Subject item={item} />{" "}
              <span className="attention-words"><Message text={attentionWords(item)} now={now} /></span>
            </div>
            {item.since != null && <span className="faint"><Time at={item.since}>{age(secondsBetween(item.since, null, now))}</Time></span>}
          </li>
        ))}
      </ul>
    </Panel>
  );
}

/** The same while it lasts, whatever comes above it. */
const keyOf = ({ kind, node, job, params, message }: Item) => (
  JSON.stringify([kind, node, job ?? params.index ?? (kind === "offender" && message)])
);

function Subject({ item }: { item: Item }) {
  if (item.job == null) return <Link to="/box">{item.node}</Link>;
  const words = `${item.job} ${shownName(item.name, item.readable)}`;
  return (
    <>
      {item.readable ? <Link to="/jobs/$jobId" params={{ jobId: String(item.job) }}>{words}</Link> : <span>{words}</span>}
      <span className="faint"> {item.user}</span>
    </>
  );
}
