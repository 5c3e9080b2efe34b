import { type QueryClient, useQuery, useQueryClient } from "@tanstack/react-query";

import { mayChange } from "../lib/rights";
import { client, isUnauthorized, unwrap } from "./client";
import type { Settings } from "./types";

export const SETTINGS_KEY = ["settings"] as const;

/** Who is signed in, and what the session allows; null while nobody is. */
export function useSettings() {
  return useQuery({ queryKey: SETTINGS_KEY, queryFn: fetchSettings, staleTime: 60_000 });
}

async function fetchSettings(): Promise<Settings | null> {
  try {
    return await unwrap(client.GET("/api/v1/settings"));
  } catch (error) {
    if (isUnauthorized(error)) return null;
    throw error;
  }
}

/** Whether the viewer may change a job or sweep. */
export function useMayChange(work: { user: string; project: string }): boolean {
  return mayChange(useSettings().data, work);
}

export function mayAdminister(settings: Settings | null | undefined): boolean {
  return settings?.scopes.includes("admin") ?? false;
}

/** Ways to sign in beside tokens, for whoever has no session yet. */
export function useSignInWays() {
  return useQuery({
    queryKey: ["ways"],
    queryFn: () => unwrap(client.GET("/api/v1/session/ways")),
    staleTime: Infinity,
    retry: false,
  });
}

/** Opens a session with a token, or with the one-time code of a sign-in link. */
export async function signIn(proof: { token: string } | { code: string }): Promise<void> {
  await unwrap(client.POST("/api/v1/session", { body: proof }));
}

export function useSignOut(): () => Promise<void> {
  const cache = useQueryClient();
  return () => signOut(cache);
}

/** Ends the session; while the service does not answer, which the page tells, it stays. */
export async function signOut(cache: QueryClient): Promise<void> {
  const answer = await client.DELETE("/api/v1/session").catch(() => null);
  if (!answer?.response.ok && answer?.response.status !== 401) return;
  cache.setQueryData(SETTINGS_KEY, null);
  cache.removeQueries({ predicate: (query) => query.queryKey[0] !== SETTINGS_KEY[0] });
}
