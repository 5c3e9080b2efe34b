import { keepPreviousData, useInfiniteQuery } from "@tanstack/react-query";

import { type AuditFilters, auditQuery } from "../lib/audit";
import { client, unwrap } from "./client";
import type { AuditPage } from "./types";

const LIVE_MS = 30_000;

async function fetchPage(filters: AuditFilters, cursor: string | null): Promise<AuditPage> {
  const query = { ...auditQuery(filters, Date.now()), cursor };
  return await unwrap(client.GET("/api/v1/audit", { params: { query } })) as AuditPage; // the table is a link
}

/** Entries of the audit that fit, the newest first, a page at a time. */
export function useAudit(filters: AuditFilters) {
  return useInfiniteQuery({
    queryKey: ["audit", filters],
    queryFn: ({ pageParam }) => fetchPage(filters, pageParam),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next ?? null,
    refetchInterval: LIVE_MS,
    placeholderData: keepPreviousData,
  });
}
