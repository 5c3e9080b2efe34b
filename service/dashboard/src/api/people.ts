import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";

import { inLanguage } from "../lib/refusals";
import { refresh } from "./changes";
import { client, unwrap } from "./client";
import { SETTINGS_KEY } from "./session";
import type { NewProject, NewUser, ProjectChanges, Role, TokenRequest, User, UserChanges } from "./types";

const LIVE_MS = 30_000;

export function useUsers() {
  return useQuery({ queryKey: ["users"], queryFn: fetchUsers, refetchInterval: LIVE_MS });
}

async function fetchUsers(): Promise<User[]> {
  return await Promise.all((await unwrap(client.GET("/api/v1/users"))).map(translated));
}

/** A user whose warning is in the language that was chosen. */
export async function translated(user: User): Promise<User> {
  const { warning_sentence: sentence } = user;
  if (sentence == null) return user;
  const { detail } = await inLanguage({ ...sentence, detail: sentence.message }) as { detail: string };
  return { ...user, warning: detail };
}

export function useProjects() {
  return useQuery({ queryKey: ["projects"], queryFn: () => unwrap(client.GET("/api/v1/projects")), refetchInterval: LIVE_MS });
}

/** The viewer's own tokens and sessions, or everybody's, which only administrators see. */
export function useTokens(everybody = false) {
  return useQuery({
    queryKey: ["tokens", everybody],
    queryFn: () => unwrap(client.GET("/api/v1/tokens", { params: { query: { all: everybody } } })),
    refetchInterval: LIVE_MS,
  });
}

/** The viewer's secrets and their projects', without values. */
export function useSecrets() {
  return useQuery({ queryKey: ["secrets"], queryFn: () => unwrap(client.GET("/api/v1/secrets")), refetchInterval: LIVE_MS });
}

/**
 * A change, after which what it touches is asked for again. What is secret is kept no longer than it is shown. Of those
 * with a name that are made quickly, each waits for the one before: what was chosen last holds.
 */
function useChange<Input, Output>(change: (input: Input) => Promise<Output>, name?: string) {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: change,
    ...(name !== undefined && { scope: { id: name } }),
    gcTime: 0,
    onSettled: refresh(cache, ["users", "projects", "tokens", "secrets", "sharing", ...SETTINGS_KEY]),
  });
}

export const useCreateUser = () =>
  useChange((body: NewUser) => unwrap(client.POST("/api/v1/users", { body })));
export const useChangeUser = () =>
  useChange(({ name, changes }: { name: string; changes: Partial<UserChanges> }) =>
    unwrap(client.PATCH("/api/v1/users/{name}", { params: { path: { name } }, body: changes as UserChanges })));
export const useMakeLink = () =>
  useChange((name: string) =>
    unwrap(client.POST("/api/v1/users/{name}/sign-in-codes", { params: { path: { name } } })));

export const useCreateToken = () =>
  useChange((body: TokenRequest) => unwrap(client.POST("/api/v1/tokens", { body })));
export const useRotateToken = () =>
  useChange(({ token, grace }: { token: string; grace: string | null }) =>
    unwrap(client.POST("/api/v1/tokens/{token}/rotate", { params: { path: { token } }, body: { grace } })));
export const useRevokeToken = () =>
  useChange((token: string) => unwrap(client.DELETE("/api/v1/tokens/{token}", { params: { path: { token } } })));

interface SecretName {
  name: string;
  /** Whose it is; null: the viewer's own. */
  project: string | null;
}

export const useSetSecret = () =>
  useChange(({ name, project, value }: SecretName & { value: string }) => unwrap(
    project === null
      ? client.PUT("/api/v1/secrets/{name}", { params: { path: { name } }, body: { value } })
      : client.PUT("/api/v1/projects/{project}/secrets/{name}", { params: { path: { project, name } }, body: { value } }),
  ));
export const useRemoveSecret = () =>
  useChange(({ name, project }: SecretName) => unwrap(
    project === null
      ? client.DELETE("/api/v1/secrets/{name}", { params: { path: { name } } })
      : client.DELETE("/api/v1/projects/{project}/secrets/{name}", { params: { path: { project, name } } }),
  ));

export const useCreateProject = () =>
  useChange((body: NewProject) => unwrap(client.POST("/api/v1/projects", { body })));
export const useChangeProject = () =>
  useChange(({ name, changes }: { name: string; changes: Partial<ProjectChanges> }) =>
    unwrap(client.PATCH("/api/v1/projects/{name}", { params: { path: { name } }, body: changes as ProjectChanges })),
  "project");
export const useSetMember = () =>
  useChange(({ project, user, role }: { project: string; user: string; role: Role }) =>
    unwrap(client.PUT("/api/v1/projects/{name}/members/{user}", { params: { path: { name: project, user } }, body: { role } })),
  "member");
export const useRemoveMember = () =>
  useChange(({ project, user }: { project: string; user: string }) =>
    unwrap(client.DELETE("/api/v1/projects/{name}/members/{user}", { params: { path: { name: project, user } } })));
