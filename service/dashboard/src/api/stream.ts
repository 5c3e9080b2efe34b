import { useEffect, useSyncExternalStore } from "react";

import { type FromTab, StreamHub, type ToTab } from "./streamHub";

type Listener = (message: ToTab) => void;

/** How often a tab says that it is there, in milliseconds. */
const HEARTBEAT_MS = 30_000;

const listeners = new Set<Listener>();
/** What the tab follows, each how often, and by how many also while it is hidden. */
const follows = new Map<string, { count: number; hidden: number }>();
let send: ((message: FromTab) => void) | null = null;
let user: string | null = null;
let open = false;
let announcing = false;
let speaking = false;

/** Calls a listener for all that the stream brings to this tab, until the returned function is called. */
export function onStream(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Follows a topic until the returned function is called. A hidden tab lets go of all that its title does not need. */
export function follow(topic: string, whileHidden = false): () => void {
  const change = (by: 1 | -1) => {
    const { count, hidden } = follows.get(topic) ?? { count: 0, hidden: 0 };
    if (count + by > 0) follows.set(topic, { count: count + by, hidden: hidden + (whileHidden ? by : 0) });
    else follows.delete(topic);
    announce();
  };
  change(1);
  return () => change(-1);
}

export function useFollow(topic: string | null, whileHidden = false): void {
  useEffect(() => (topic === null ? undefined : follow(topic, whileHidden)), [topic, whileHidden]);
}

/** Whether the service tells by itself what changes. */
export function useStreaming(): boolean {
  return useSyncExternalStore(onStream, () => open);
}

/** Whether this tab is the one of the browser that notifies: none is in sight, and one shall speak. */
export function speaks(): boolean {
  return speaking;
}

/** Joins the browser's stream as a user, or leaves it. */
export function join(name: string | null): void {
  if (name === user) return;
  user = name;
  if (name === null) {
    send?.({ kind: "leave" });
    return;
  }
  if (send === null) {
    send = connect();
    setInterval(announce, HEARTBEAT_MS);
    document.addEventListener("visibilitychange", announce);
    addEventListener("pagehide", () => send?.({ kind: "leave" }));
    addEventListener("pageshow", announce);
  }
  announce();
}

/** The browser's shared worker, or this tab's own stream where there is none. */
function connect(): (message: FromTab) => void {
  if (typeof SharedWorker === "undefined") {
    const hub = new StreamHub();
    return (message) => hub.receive(receive, message);
  }
  const worker = new SharedWorker(new URL("./stream.worker.ts", import.meta.url), { type: "module", name: "stream" });
  worker.port.addEventListener("message", ({ data }: MessageEvent<ToTab>) => receive(data));
  worker.port.start();
  return (message) => worker.port.postMessage(message);
}

function receive(message: ToTab): void {
  if (message.kind === "open") open = message.open;
  if (message.kind === "speaker") speaking = message.speaks;
  listeners.forEach((listener) => listener(message));
}

/** Says what the tab follows, once for all that changes in one turn. */
function announce(): void {
  if (announcing) return;
  announcing = true;
  queueMicrotask(() => {
    announcing = false;
    if (user === null) return;
    const wanted = [...follows].filter(([, { hidden }]) => hidden > 0 || !document.hidden);
    const topics = wanted.map(([topic]) => topic);
    send?.({ kind: "follow", user, topics, hidden: document.hidden });
  });
}
