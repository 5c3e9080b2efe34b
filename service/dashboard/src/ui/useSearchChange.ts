import { type RegisteredRouter, type RouteById, trimPathRight, useMatch, useRouter } from "@tanstack/react-router";
import { useCallback } from "react";

/** Pages whose addresses say how they are shown. */
type Page = "/" | "/compare" | "/sweeps/$sweepId" | "/jobs/$jobId/$tab" | "/shared/$token";
type SearchOf<From extends Page> = RouteById<RegisteredRouter["routeTree"], From>["types"]["fullSearchSchema"];

/**
 * A function that changes what a page's address says of how it is shown, where the page is scrolled to.
 *
 * It does nothing once another page has been asked for, which may take a while to load: whoever leaves is not taken
 * back, and the next address has nothing of this one.
 */
export function useSearchChange<From extends Page>(from: From) {
  const router = useRouter();
  const page = useMatch({ from, select: ({ pathname }) => trimPathRight(pathname) });
  return useCallback(
    async (next: (before: SearchOf<From>) => SearchOf<From>) => {
      if (trimPathRight(router.latestLocation.pathname) !== page) return;
      await router.navigate({ to: ".", search: next as never, replace: true, resetScroll: false });
    },
    [router, page],
  );
}
