import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";

import type { Complaint } from "../lib/specForm";
import { type Spec } from "../lib/specText";
import type { Schemas } from "../lib/schema";
import { refresh } from "./changes";
import { ApiError, client, fetchText, unwrap } from "./client";
import { type Again, postRerun } from "./jobs";
import type { DryRun, Group, Job, JobSpec } from "./types";

/** A forecast is as good as what it was made from, and jobs come and go. */
const FORECAST_MS = 30_000;

/** The schemas of the API, as the service describes them. */
export function useSchemas() {
  return useQuery({
    queryKey: ["schemas"],
    queryFn: async () => {
      const described = JSON.parse(await fetchText("/openapi.json")) as { components: { schemas: Schemas } };
      return described.components.schemas;
    },
    staleTime: Infinity,
  });
}

/** What would be submitted: a spec, or a job again with changes. */
export type Draft = { spec: Spec } | { again: Again };

/** What the service says of a draft. */
export type Verdict = { checked: DryRun } | Refused;

/** What is wrong with a draft. */
export interface Refused {
  detail: string;
  complaints: Complaint[];
}

/** Has a draft checked, without storing anything; null is none. */
export function useDryRun(draft: Draft | null) {
  return useQuery({
    queryKey: ["dry-run", draft],
    queryFn: () => (draft === null ? null : verdict(draft)),
    enabled: draft !== null,
    refetchInterval: FORECAST_MS,
    gcTime: 0,
    placeholderData: keepPreviousData,
  });
}

async function verdict(draft: Draft): Promise<Verdict> {
  try {
    return { checked: await post(draft, true) as DryRun };
  } catch (error) {
    if (!(error instanceof ApiError) || error.status >= 500 || error.status === 401) throw error;
    return refusal(error);
  }
}

/** What a refusal complains of; of a rerun it names fields below its changes. */
function refusal({ message, fields }: ApiError): Refused {
  const complaints = fields.map((one) => ({ ...one, field: one.field.replace(/^changes\./u, "") }));
  return { detail: message, complaints };
}

function post(draft: Draft, dryRun: boolean): Promise<DryRun | Job | Group> {
  if ("again" in draft) return postRerun(draft.again, dryRun);
  const params = { query: { dry_run: dryRun } };
  // The service fills in what is left out, and says what is wrong.
  return unwrap(client.POST("/api/v1/jobs", { params, body: draft.spec as unknown as JobSpec }));
}

/** Submits a draft; what it makes is a job, or the sweep of many. */
export function useSubmit() {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: (draft: Draft) => post(draft, false) as Promise<Job | Group>,
    onSettled: refresh(cache, ["jobs"]),
  });
}
