import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";

import { useNodes } from "../api/box";
import { mayAdminister, useSettings } from "../api/session";
import { Notice } from "../ui/Notice";
import { useTitle } from "../ui/useTitle";
import { NoNode } from "../ui/NoNode";
import { NodePanel } from "./NodePanel";
import { NoticeActions } from "./NoticeActions";
import { QueuePanel } from "./QueuePanel";
import { ReservedPanel } from "./ReservedPanel";

export function BoxPage() {
  useTitle(t`The box`);
  const nodes = useNodes();
  const admin = mayAdminister(useSettings().data);
  return (
    <>
      <div className="title-row">
        <h1 className="page-title"><Trans>The box</Trans></h1>
        {admin && <NoticeActions />}
      </div>
      <Notice error={nodes.error} />
      {nodes.data?.items.length === 0 && <NoNode />}
      <div className="box">
        <div>{nodes.data?.items.map((node) => <NodePanel key={node.name} node={node} admin={admin} />)}</div>
        <div>
          <ReservedPanel />
          <QueuePanel />
        </div>
      </div>
    </>
  );
}
