/** Who looks at a page, as `GET /settings` tells. */
export interface Viewer {
  user: { name: string };
  scopes: readonly string[];
}

/** Whether a viewer may submit jobs, copies of other people's too. */
export function maySubmit(viewer: Viewer | null | undefined): boolean {
  return viewer?.scopes.includes("submit") ?? false;
}

/** Whether a viewer may stop or change what a user has submitted: its owner and administrators may. */
export function mayChange(viewer: Viewer | null | undefined, owner: string): boolean {
  return maySubmit(viewer) && (viewer?.user.name === owner || viewer?.scopes.includes("admin") === true);
}
