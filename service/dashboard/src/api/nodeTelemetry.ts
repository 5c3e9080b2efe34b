import { useQuery, useQueryClient } from "@tanstack/react-query";

import { SPARK_SAMPLES } from "../box/spark";
import { mergeSeries } from "../lib/series";
import { useNodes } from "./box";
import { client, unwrap } from "./client";
import { TELEMETRY_MS } from "./live";
import type { Metrics } from "./types";

/** The telemetry of one of several nodes; the more there are, the less often each is asked for. */
export function useNodeTelemetry(name: string) {
  const cache = useQueryClient();
  const nodes = useNodes().data?.items.length ?? 1;
  const queryKey = ["nodes", name, "telemetry"];
  return useQuery({
    queryKey,
    queryFn: () => newerTelemetry(cache.getQueryData<Metrics>(queryKey), SPARK_SAMPLES, (query) => (
      unwrap(client.GET("/api/v1/nodes/{name}/telemetry", { params: { path: { name }, query } }))
    )),
    refetchInterval: TELEMETRY_MS * Math.max(1, nodes),
  });
}

/** Telemetry with what has come since it was read; once it has grown to twice its size it is read anew. */
async function newerTelemetry(
  known: Metrics | undefined, points: number, read: (query: { max_points: number; since?: string }) => Promise<unknown>,
): Promise<Metrics> {
  const longest = known?.series.reduce((most, one) => Math.max(most, one.points.length), 0) ?? Infinity;
  const grows = known !== undefined && longest > 0 && longest < 2 * points;
  // The client's types lose that points are triples.
  const fresh = await read({ max_points: points, ...(grows && { since: known.cursor }) }) as Metrics;
  return grows && !fresh.reset ? { ...fresh, series: mergeSeries(known.series, fresh.series) } : fresh;
}
