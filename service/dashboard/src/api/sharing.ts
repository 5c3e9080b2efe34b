import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";

import { refresh } from "./changes";
import { client, unwrap } from "./client";
import type { NewReservation, Policy, QuotaValues, WhatIf } from "./types";

const LIVE_MS = 30_000;
const SLOW_MS = 60_000;

/** One ISO week of the box. */
export function useDigest(week: string) {
  return useQuery({
    queryKey: ["sharing", "digest", week],
    queryFn: () => unwrap(client.GET("/api/v1/usage/digest", { params: { query: { week } } })),
    refetchInterval: SLOW_MS,
    placeholderData: keepPreviousData,
  });
}

export function useQuotas() {
  return useQuery({
    queryKey: ["sharing", "quotas"],
    queryFn: () => unwrap(client.GET("/api/v1/quotas")),
    refetchInterval: LIVE_MS,
  });
}

/** All that was ever reserved, and is. */
export function useAllReservations() {
  return useQuery({
    queryKey: ["sharing", "reservations", "all"],
    queryFn: () => unwrap(client.GET("/api/v1/reservations", { params: { query: { all: true } } })),
    refetchInterval: LIVE_MS,
  });
}

/** What is reserved now or later. */
export function useReservations() {
  return useQuery({
    queryKey: ["sharing", "reservations"],
    queryFn: () => unwrap(client.GET("/api/v1/reservations")),
    refetchInterval: LIVE_MS,
  });
}

const readPolicy = () => unwrap(client.GET("/api/v1/policy"));

export function usePolicy() {
  return useQuery({ queryKey: ["sharing", "policy"], queryFn: readPolicy, refetchInterval: SLOW_MS });
}

/** Devices that no job has, and why. */
export function useIdle() {
  return useQuery({
    queryKey: ["nodes", "idle"],
    queryFn: () => unwrap(client.GET("/api/v1/nodes/idle")),
    refetchInterval: LIVE_MS,
  });
}

export function useCalibration() {
  return useQuery({
    queryKey: ["sharing", "calibration"],
    queryFn: () => unwrap(client.GET("/api/v1/queue/calibration")),
    refetchInterval: SLOW_MS,
  });
}

/** A change of how the box is shared; afterwards all about it is asked for again. */
function useChange<Input, Output>(change: (input: Input) => Promise<Output>) {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSettled: refresh(cache, ["sharing", "queue", "nodes"]),
  });
}

interface QuotaChange {
  kind: "user" | "project";
  name: string;
  values: QuotaValues;
}

export const useSetQuota = () =>
  useChange(({ kind, name, values }: QuotaChange) =>
    unwrap(client.PUT("/api/v1/quotas/{kind}/{name}", { params: { path: { kind, name } }, body: values })));
/** Changes fields of the policy; what others have set of it meanwhile stays. */
export const useSetPolicy = () =>
  useChange(async (changes: Partial<Policy>) => (
    unwrap(client.PUT("/api/v1/policy", { body: { ...await readPolicy(), ...changes } }))
  ));
/** A policy played over what has run here; nothing changes. */
export const useWhatIf = () =>
  useMutation({ mutationFn: (body: WhatIf) => unwrap(client.POST("/api/v1/policy/what-if", { body })) });
export const useReserve = () =>
  useChange((body: NewReservation) => unwrap(client.POST("/api/v1/reservations", { body })));
export const useChangeReservation = () =>
  useChange(({ id, body }: { id: string; body: NewReservation }) =>
    unwrap(client.PUT("/api/v1/reservations/{reservation}", { params: { path: { reservation: id } }, body })));
export const useCancelReservation = () =>
  useChange((reservation: string) =>
    unwrap(client.DELETE("/api/v1/reservations/{reservation}", { params: { path: { reservation } } })));
