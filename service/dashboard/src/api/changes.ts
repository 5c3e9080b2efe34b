import type { QueryClient } from "@tanstack/react-query";

/**
 * What follows the end of a change: what it touches is asked for again. One that succeeded is done with the answers,
 * and one that failed says so at once: the answers may be long in coming, too.
 */
export function refresh(cache: QueryClient, keys: readonly string[]) {
  return (_answer: unknown, error: unknown) => {
    const asked = Promise.all(keys.map((key) => cache.invalidateQueries({ queryKey: [key] })));
    return error === null ? asked : undefined;
  };
}
