/** Who looks at a page, as `GET /settings` tells. */
export interface Viewer {
  user: { name: string; role?: string };
  scopes: readonly string[];
  /** Roles in the projects that the viewer is a member of. */
  roles?: Readonly<Record<string, string>>;
}

/** The viewer's role in a project, in place of their own on the installation. */
function roleIn(viewer: Viewer, project: string): string {
  if (viewer.scopes.includes("admin")) return "administrator";
  return viewer.roles?.[project] ?? (viewer.user.role === "viewer" ? "viewer" : "member");
}

/** Whether a viewer may submit jobs to a project, copies of other people's too. */
export function maySubmit(viewer: Viewer | null | undefined, project: string): boolean {
  return viewer != null && viewer.scopes.includes("submit") && roleIn(viewer, project) !== "viewer";
}

/** Whether a viewer may stop or change a job or sweep: its owner and administrators may, of all or of its project. */
export function mayChange(viewer: Viewer | null | undefined, work: { user: string; project: string }): boolean {
  if (viewer == null || !maySubmit(viewer, work.project)) return false;
  return viewer.user.name === work.user || roleIn(viewer, work.project) === "administrator";
}
