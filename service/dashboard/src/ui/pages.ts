/** A page that the bar at the top leads to. */
export interface PageLink {
  to: "/" | "/box" | "/sharing" | "/projects" | "/people" | "/audit";
  label: string;
}

const EVERYBODYS: readonly PageLink[] = [
  { to: "/", label: "Home" },
  { to: "/box", label: "The box" },
  { to: "/sharing", label: "Sharing" },
  { to: "/projects", label: "Projects" },
];
const ADMINISTRATORS: readonly PageLink[] = [{ to: "/people", label: "People" }, { to: "/audit", label: "Audit" }];

/** The pages that a viewer is led to. */
export function pagesOf(admin: boolean): readonly PageLink[] {
  return admin ? [...EVERYBODYS, ...ADMINISTRATORS] : EVERYBODYS;
}
