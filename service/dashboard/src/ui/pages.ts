import { t } from "@lingui/core/macro";

/** A page that the bar at the top leads to. */
export interface PageLink {
  to: "/" | "/box" | "/sharing" | "/projects" | "/people" | "/audit";
  label: string;
}

const EVERYBODYS: readonly PageLink[] = [
  { to: "/", label: t`Home` },
  { to: "/box", label: t`The box` },
  { to: "/sharing", label: t`Sharing` },
  { to: "/projects", label: t`Projects` },
];
const ADMINISTRATORS: readonly PageLink[] = [{ to: "/people", label: t`People` }, { to: "/audit", label: t`Audit` }];

/** The pages that a viewer is led to. */
export function pagesOf(admin: boolean): readonly PageLink[] {
  return admin ? [...EVERYBODYS, ...ADMINISTRATORS] : EVERYBODYS;
}
