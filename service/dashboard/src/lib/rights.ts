import type { Job } from "../api/types";

/** Who looks at a page, as `GET /settings` tells. */
export interface Viewer {
  user: { name: string; role?: string };
  scopes: readonly string[];
  /** Roles in the projects that the viewer is a member of. */
  roles?: Readonly<Record<string, string>>;
  /** Projects that take jobs of their members alone, of which the viewer is none. */
  closed_projects?: readonly string[];
  /** Whether there are public links to jobs. */
  shared_links?: boolean;
}

/** The viewer's role in a project, in place of their own on the installation. */
function roleIn(viewer: Viewer, project: string): string {
  if (viewer.scopes.includes("admin")) return "administrator";
  return viewer.roles?.[project] ?? (viewer.user.role === "viewer" ? "viewer" : "member");
}

/** Priorities that a viewer may give to a job: urgent ones overtake everybody. */
export function prioritiesOf(administers: boolean): readonly Job["priority"][] {
  return ["low", "normal", "high", ...(administers ? ["urgent" as const] : [])];
}

/** Whether a viewer submits at all, to some project. */
export function maySubmitAnywhere(viewer: Viewer | null | undefined): boolean {
  return viewer?.scopes.includes("submit") ?? false;
}

/** Whether a viewer may submit jobs to a project, copies of other people's too. */
export function maySubmit(viewer: Viewer | null | undefined, project: string): boolean {
  if (viewer == null || (viewer.closed_projects?.includes(project) ?? false)) return false;
  return viewer.scopes.includes("submit") && roleIn(viewer, project) !== "viewer";
}

/** Whether a viewer says who is in a project, who reads its jobs and who submits to it. */
export function mayAdministerProject(viewer: Viewer | null | undefined, project: string): boolean {
  return viewer != null && viewer.scopes.includes("submit") && roleIn(viewer, project) === "administrator";
}

/** Whether a token of some scopes is the viewer's to rotate and revoke: none is that may do more than theirs. */
export function mayEndToken(viewer: Viewer | null | undefined, token: { scopes: readonly string[] }): boolean {
  return viewer != null && (viewer.scopes.includes("admin") || token.scopes.every((scope) => viewer.scopes.includes(scope)));
}

/** Whether a viewer may stop or change a job or sweep: its owner and administrators may, of all or of its project. */
export function mayChange(viewer: Viewer | null | undefined, work: { user: string; project: string }): boolean {
  if (viewer == null || !viewer.scopes.includes("submit") || roleIn(viewer, work.project) === "viewer") return false;
  return viewer.user.name === work.user || roleIn(viewer, work.project) === "administrator";
}
