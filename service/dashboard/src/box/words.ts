import { t } from "@lingui/core/macro";

import type { Node } from "../api/types";

/** What the states of nodes are called. */
export const NODE_STATES: Record<Node["state"], string> = {
  online: t`online`, draining: t`draining`, unreachable: t`unreachable`,
};
