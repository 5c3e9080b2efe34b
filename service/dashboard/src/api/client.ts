import { t } from "@lingui/core/macro";
import createClient from "openapi-fetch";

import { inLanguage } from "../lib/refusals";
import { outageMiddleware } from "./outage";
import type { paths } from "./schema";

export const client = createClient<paths>({ baseUrl: "", querySerializer: { array: { style: "form", explode: true } } });
client.use(outageMiddleware);

/** A refusal by the service: problem details, or what little is known without them. */
export class ApiError extends Error {
  readonly status: number;
  /** Field of the request → what is wrong with it. */
  readonly fields: { field: string; message: string }[];

  constructor(status: number, detail: string, fields: { field: string; message: string }[] = []) {
    super(detail);
    this.name = "ApiError";
    this.status = status;
    this.fields = fields;
  }
}

/** The body of an answer, or an `ApiError` for a refusal. */
export async function unwrap<T>(answer: Promise<{ data?: T; error?: unknown; response: Response }>): Promise<T> {
  const { data, error, response } = await answer;
  if (response.ok) return data as T;
  throw problem(response.status, await inLanguage(error));
}

/** An error from problem details of any shape. */
export function problem(status: number, body: unknown): ApiError {
  const { detail, title, errors } = (body ?? {}) as { detail?: unknown; title?: unknown; errors?: unknown };
  const text = [detail, title].find((one): one is string => typeof one === "string") ?? t`The service answered ${status}.`;
  return new ApiError(status, text, Array.isArray(errors) ? errors as ApiError["fields"] : []);
}

/** What is wrong with each of some fields of a form, and the error itself where it is about anything else. */
export function atFields<Key extends string>(error: unknown, keys: readonly Key[]) {
  const complaints = error instanceof ApiError ? error.fields : [];
  const found = complaints.map(({ field, message }) => ({ key: keys.find((one) => one === field.split(".")[0]), message }));
  const fields = Object.fromEntries(
    found.flatMap(({ key, message }) => (key === undefined ? [] : [[key, message]])),
  ) as Partial<Record<Key, string>>;
  return { fields, rest: found.length > 0 && found.every(({ key }) => key !== undefined) ? null : error };
}

/** The text at an address. */
export async function fetchText(address: string): Promise<string> {
  return await (await fetched(address)).text();
}

/** The bytes at an address. */
export async function fetchBytes(address: string, signal?: AbortSignal): Promise<Uint8Array> {
  return new Uint8Array(await (await fetched(address, signal)).arrayBuffer());
}

async function fetched(address: string, signal?: AbortSignal): Promise<Response> {
  const answer = await fetch(address, signal && { signal });
  if (!answer.ok) throw problem(answer.status, await inLanguage(await answer.json().catch(() => null)));
  return answer;
}

export function isUnauthorized(error: unknown): boolean {
  return error instanceof ApiError && error.status === 401;
}

/** Words for a person about any error, a lost connection included. */
export function explain(error: unknown): string {
  if (error instanceof TypeError) return t`The service does not answer. It is tried again.`;
  return error instanceof Error ? error.message : String(error);
}
