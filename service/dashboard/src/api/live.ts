import { type Query, type QueryClient, type QueryKey, useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";

import { compact } from "../lib/buckets";
import { type ToldJob, withTold } from "../lib/listed";
import { withNewest } from "../lib/notifications";
import { type Axis, mergeSeries } from "../lib/series";
import type { JobState } from "../lib/states";
import { Throttle } from "../lib/throttle";
import { client } from "./client";
import type { JobMetrics } from "./metrics";
import { current, record } from "./outage";
import { SETTINGS_KEY } from "./session";
import { join, onStream, useStreaming } from "./stream";
import type { ToTab } from "./streamHub";
import type { Job, Metrics, Timeline } from "./types";

/** How often is asked for what an event would have told, in case one was lost, in milliseconds. */
const REREAD_MS = 60_000;
/** How often what moves is asked for while no stream tells of it, in milliseconds. */
export const POLL_MS = 5_000;
/** How often telemetry is asked for, of which the stream tells nothing, in milliseconds. */
export const TELEMETRY_MS = 10_000;
/** What changes often is asked for no more than so often. */
const JOB_MS = 1_000;
const LIST_MS = 5_000;
/** Lists that a job has left, or has come to, are asked for sooner: without it they are wrong. */
const MOVED_MS = 2_000;
const ATTENTION_MS = 10_000;
const TIMELINE_MS = { jobs: 10_000, nodes: 20_000 };
/** Topics of which an event tells that something has changed, and not what. */
const LISTS = new Set(["jobs", "queue", "nodes", "notices"]);
/** How long points may lack a part before they are asked for: it may be on its way. */
const GAP_MS = 1_500;
/** While the stream is away the service is asked so often whether it answers, and each time for so long. */
const PROBE_MS = 2_000;
const PROBE_TIMEOUT_MS = 3_000;

/** How often to ask for what the stream tells: seldom, or every `pollMs` while there is no stream. */
export function useInterval(pollMs: number): number {
  return useStreaming() ? REREAD_MS : pollMs;
}

/** Brings what the stream tells into the cache, while a user is signed in. */
export function useLive(user: string | undefined): void {
  const cache = useQueryClient();
  useEffect(() => {
    join(user ?? null);
    if (user === undefined) return;
    const events = new Events(cache);
    const stop = onStream((message) => events.receive(message));
    return () => {
      stop();
      events.stop();
    };
  }, [cache, user]);
}

export class Events {
  #cache: QueryClient;
  #throttle = new Throttle();
  #due: ((query: Query) => boolean)[] = [];
  #probing: ReturnType<typeof setTimeout> | undefined;
  /** Grows when probing ends: an answer to an earlier probe begins no other. */
  #outages = 0;
  #wasOpen = false;
  /** Jobs that were told of while an answer was on its way, by id: the answer may be older. */
  #told = new WeakMap<Query, Map<string, ToldJob>>();
  #unsubscribe: () => void;

  constructor(cache: QueryClient) {
    this.#cache = cache;
    this.#unsubscribe = cache.getQueryCache().subscribe((event) => {
      if (event.type === "updated" && event.action.type === "success" && event.action.manual !== true) {
        this.#answered(event.query as Query);
      }
    });
  }

  stop(): void {
    this.#stopProbing();
    this.#unsubscribe();
  }

  #stopProbing(): void {
    clearTimeout(this.#probing);
    this.#outages += 1;
  }

  receive(message: ToTab): void {
    if (message.kind !== "open" || message.open) record(true);
    if (message.kind === "open") this.#setOpen(message.open);
    if (message.kind === "started") this.#start(message.topics);
    if (message.kind === "event") this.#event(message.name, message.data);
  }

  /** What was told while the stream was away is lost: all is asked for again. */
  #setOpen(open: boolean): void {
    this.#stopProbing();
    if (!open) {
      this.#probing = setTimeout(() => void this.#probe(), this.#wasOpen ? 0 : PROBE_TIMEOUT_MS);
    } else if (this.#wasOpen) {
      void this.#cache.invalidateQueries();
    }
    this.#wasOpen ||= open;
  }

  async #probe(): Promise<void> {
    const outage = this.#outages;
    const signal = AbortSignal.timeout(PROBE_TIMEOUT_MS);
    const answer = await client.GET("/api/v1/settings", { signal }).catch(() => null);
    if (outage !== this.#outages) return;
    if (answer?.response.status === 401) {
      this.#cache.setQueryData(SETTINGS_KEY, null);
      return;
    }
    this.#probing = setTimeout(() => void this.#probe(), current() !== null ? PROBE_MS : 5 * PROBE_MS);
  }

  /** What has happened between the answer that is shown and the moment from which on the stream tells. */
  #start(topics: readonly string[]): void {
    for (const topic of topics) {
      const [kind = "", id = ""] = topic.split(":");
      if (LISTS.has(kind)) this.#list(kind);
      if (kind === "job") this.#parts(id);
      if (kind === "mine") this.#invalidate(({ queryKey }) => queryKey[0] === "mine" || queryKey[0] === "attention");
    }
  }

  #event(name: string, data: Record<string, unknown>): void {
    if (LISTS.has(name)) {
      this.#throttle.run(name, LIST_MS, () => this.#list(name));
    }
    if (name === "job") this.#job(data as unknown as { job: ToldJob; changed: boolean });
    if (name === "metrics") this.#metrics(data as unknown as Points);
  }

  #list(name: string): void {
    if (name === "jobs") {
      this.#invalidate(({ queryKey }) => queryKey[0] === "jobs" || queryKey[0] === "sweep");
    }
    if (name === "jobs" || name === "nodes") {
      const reread = () => this.#invalidate(({ queryKey }) => queryKey[0] === "timeline" || queryKey[0] === "attention");
      if (name === "nodes" && this.#knowsNoNode()) reread();
      else this.#throttle.run(`timeline of ${name}`, TIMELINE_MS[name], reread);
    }
    if (name === "notices") this.#invalidate(({ queryKey }) => queryKey[0] === "notices");
    if (name === "queue") this.#invalidate(({ queryKey }) => queryKey[0] === "queue" || queryKey[2] === "why");
    if (name === "nodes") this.#invalidate(({ queryKey }) => queryKey[0] === "nodes" && queryKey.length === 1);
  }

  /** Whether a timeline is still without any node, so that the first that joins is to be shown at once. */
  #knowsNoNode(): boolean {
    const known = this.#cache.getQueriesData<Timeline>({ queryKey: ["timeline"] });
    return known.some(([, timeline]) => timeline?.nodes.length === 0);
  }

  #job({ job, changed }: { job: ToldJob; changed: boolean }): void {
    let version: number | undefined;
    let moved = false;
    for (const query of this.#cache.getQueryCache().findAll({ predicate: isAboutJobs })) {
      if (query.state.fetchStatus === "fetching") this.#remember(query, job);
      const known = query.state.data;
      const now = withJob(query.queryKey, known, job);
      if (now === null) continue;
      query.setData(now, { manual: true });
      if (isPage(known)) moved ||= (now as Page).items.length < known.items.length;
      else if (query.queryKey[0] === "job") version = (known as Job).version;
    }
    if (changed) this.#attend(job);
    if (moved) this.#throttle.run("moved", MOVED_MS, () => this.#invalidate(isList));
    if (version === undefined || !(changed || version !== job.version)) return;
    this.#throttle.run(job.id, JOB_MS, () => this.#parts(job.id));
  }

  /** A job of the viewer's own has changed; whether it hangs, the event does not tell. */
  #attend({ user }: ToldJob): void {
    if (this.#cache.getQueryData(["mine", user]) === undefined) return;
    const reread = () => this.#invalidate(({ queryKey }) => queryKey[0] === "attention");
    this.#throttle.run("attention", ATTENTION_MS, reread);
  }

  #remember(query: Query, job: ToldJob): void {
    const told = this.#told.get(query) ?? new Map<string, ToldJob>();
    this.#told.set(query, told.set(job.id, job));
  }

  /** An answer has come: what was told meanwhile of jobs is newer where their versions say so. */
  #answered(query: Query): void {
    const told = this.#told.get(query);
    if (told === undefined) return;
    this.#told.delete(query);
    let data = query.state.data;
    for (const job of told.values()) {
      if (isOlder(data, job)) data = withJob(query.queryKey, data, job) ?? data;
    }
    if (data !== query.state.data) query.setData(data, { manual: true });
  }

  /** A job and its parts are asked for again. */
  #parts(id: string): void {
    this.#invalidate(({ queryKey }) => queryKey[0] === "job" && !NOT_REREAD.has(queryKey[2]) && this.#isOf(queryKey, id));
  }

  /** New points continue the chain that the cache has, or the cache asks for what it lacks. */
  #metrics(points: Points): void {
    const { job, since, reset, cursor, series } = points;
    for (const query of this.#cache.getQueryCache().findAll({ queryKey: ["job", job, "metrics"], type: "active" })) {
      const known = query.state.data as JobMetrics | undefined;
      if (known === undefined || known.cursor === cursor) continue;
      if (!reset && known.cursor === since) {
        const axis = query.queryKey[3] as Axis;
        const merged = mergeSeries(known.series, series).map((one) => compact(one, axis));
        query.setData({ ...known, cursor, series: merged });
      } else {
        const cursorThen = known.cursor;
        setTimeout(() => {
          const now = query.state.data as JobMetrics | undefined;
          if (now?.cursor === cursorThen) this.#invalidate((one) => one === query);
        }, reset ? 0 : GAP_MS);
      }
    }
  }

  /** Asks again for what fits; what several messages of one moment name is asked for once. */
  #invalidate(predicate: (query: Query) => boolean): void {
    this.#due.push(predicate);
    if (this.#due.length === 1) queueMicrotask(() => this.#ask());
  }

  #ask(): void {
    const due = this.#due.splice(0);
    const predicate = (query: Query) => due.some((fits) => fits(query));
    const fetching = this.#cache.getQueryCache().findAll({ predicate, fetchStatus: "fetching" });
    const first = new Set(fetching.filter((query) => query.state.data === undefined));
    const asked = this.#cache.invalidateQueries({ predicate });
    // A first answer on its way is not asked for anew, and may be older than what is told now.
    if (first.size === 0) return;
    void asked.then(() => this.#cache.invalidateQueries({ predicate: (query) => first.has(query) }));
  }

  /** Whether a query is about a job; the job itself may be known by its number. */
  #isOf(key: QueryKey, id: string): boolean {
    return key[1] === id || this.#cache.getQueryData<Job>(key)?.id === id;
  }
}

interface Points extends Metrics {
  job: string;
  since: string;
}

/** Parts of a job that no event has read again: events bring their content, or tell nothing of them. */
const NOT_REREAD = new Set<unknown>(["metrics", "telemetry", "mentioned"]);

function isAboutJobs({ queryKey: [kind, , part] }: Query): boolean {
  return (kind === "job" && (part === "self" || part === "mentioned")) || kind === "jobs" || kind === "sweep" || kind === "mine";
}

interface Page {
  items: Job[];
}

function isPage(data: unknown): data is Page {
  return typeof data === "object" && data !== null && "items" in data;
}

/** What is known with a job as an event tells of it; null where that changes nothing. */
function withJob(key: QueryKey, known: unknown, job: ToldJob): unknown {
  if (known === undefined) return null;
  if (key[0] === "mine") return key[1] === job.user ? withNewest(known as readonly ToldJob[], job) : null;
  if (isPage(known)) {
    const items = withTold(known.items, statesAskedFor(key), job);
    return items && { ...known, items };
  }
  const { id, version } = known as Job;
  return id === job.id && version <= job.version ? { ...known, ...job } : null;
}

/** Whether an answer has no newer version of a job, nor the same one: that may be newer in what no version counts. */
function isOlder(answer: unknown, job: ToldJob): boolean {
  const jobs = isPage(answer) ? answer.items : Array.isArray(answer) ? answer as ToldJob[] : [answer as Job];
  const known = jobs.find(({ id }) => id === job.id);
  return known === undefined || known.version < job.version;
}

/** Lists of jobs by what they ask for, and how many jobs there are of each state. */
function isList({ queryKey: [kind, part] }: Query): boolean {
  return kind === "jobs" && (part === "list" || part === "counts");
}

/** The states that a list asks for; none: all. */
function statesAskedFor([kind, part, asked]: QueryKey): readonly JobState[] {
  if (kind !== "jobs" || part !== "list") return [];
  return (asked as { state?: readonly JobState[] }).state ?? [];
}
