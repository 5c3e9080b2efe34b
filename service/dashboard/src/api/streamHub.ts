/** What a tab says to the stream that it shares with the browser's other tabs. */
export type FromTab =
  | { kind: "follow"; user: string; topics: string[]; hidden: boolean }
  | { kind: "leave" };

/**
 * What it is told. `started` names topics that the service follows for it from now on; `speaker` says whether it
 * notifies for the whole browser.
 */
export type ToTab =
  | { kind: "event"; name: string; data: Record<string, unknown> }
  | { kind: "open"; open: boolean }
  | { kind: "started"; topics: string[] }
  | { kind: "speaker"; speaks: boolean }
  | { kind: "beat" };

export type Post = (message: ToTab) => void;

interface Tab {
  topics: Set<string>;
  hidden: boolean;
  seenAt: number;
}

const ADDRESS = "/api/v1/live";
const EVENTS = ["job", "jobs", "queue", "nodes", "notices", "metrics", "log", "log-end"] as const;
/** The service says something every 5 s: without a word for so long it is taken for gone, in milliseconds. */
const SILENT_MS = 12_000;
/** Pause before a stream is asked for again that the service refused or a proxy ended. */
const RETRY_MS = 3_000;
/** A tab says every 30 s that it is there, or every minute where the browser holds its timers back. */
const GONE_MS = 200_000;
/** A hidden tab that is not heard for so long may be held back altogether. */
const ASLEEP_MS = 100_000;
const DEBOUNCE_MS = 20;

/** The one stream of a browser: follows for the service what any tab wants, and hands each event to those who do. */
export class StreamHub {
  #tabs = new Map<Post, Tab>();
  #user = "";
  #source: EventSource | null = null;
  #stream: string | null = null;
  #followed = new Set<string>();
  #open = false;
  #speaker: Post | null = null;
  #heardAt = 0;
  #retry: ReturnType<typeof setTimeout> | undefined;
  #debounce: ReturnType<typeof setTimeout> | undefined;
  #telling = false;
  #again = false;

  constructor() {
    setInterval(() => this.#expire(), RETRY_MS);
  }

  receive(post: Post, message: FromTab): void {
    if (message.kind === "leave") {
      this.#tabs.delete(post);
    } else {
      if (!this.#tabs.has(post)) post({ kind: "open", open: this.#open });
      const before = this.#tabs.get(post)?.topics ?? new Set();
      const topics = new Set(message.topics);
      this.#tabs.set(post, { topics, hidden: message.hidden, seenAt: Date.now() });
      const known = message.topics.filter((topic) => this.#followed.has(asServed(topic)) && !before.has(topic));
      if (known.length > 0) post({ kind: "started", topics: known });
      if (message.user !== this.#user) this.#close();
      this.#user = message.user;
    }
    this.#chooseSpeaker();
    clearTimeout(this.#debounce);
    this.#debounce = setTimeout(() => void this.#follow(), DEBOUNCE_MS);
  }

  /** While no tab is in sight, the one that was heard last speaks: others may sleep. */
  #chooseSpeaker(): void {
    const [[latest] = [null]] = [...this.#tabs].sort(([, a], [, b]) => b.seenAt - a.seenAt);
    const before = this.#speaker === null ? undefined : this.#tabs.get(this.#speaker);
    const awake = before !== undefined && Date.now() - before.seenAt < ASLEEP_MS;
    const hidden = [...this.#tabs.values()].every((tab) => tab.hidden);
    const chosen = !hidden ? null : awake ? this.#speaker : latest;
    if (chosen === this.#speaker) return;
    this.#speaker?.({ kind: "speaker", speaks: false });
    this.#speaker = chosen;
    chosen?.({ kind: "speaker", speaks: true });
  }

  #expire(): void {
    const now = Date.now();
    for (const [post, tab] of this.#tabs) if (now - tab.seenAt > GONE_MS) this.receive(post, { kind: "leave" });
    if (this.#source !== null && now - this.#heardAt > SILENT_MS) {
      this.#close();
      this.#connect();
    }
  }

  #connect(): void {
    clearTimeout(this.#retry);
    if (this.#source !== null || this.#tabs.size === 0) return;
    this.#heardAt = Date.now();
    const source = this.#source = new EventSource(ADDRESS);
    source.addEventListener("open", () => this.#hear());
    source.addEventListener("open", (event: Event) => {
      // The browser has an event of the same name when it is connected, without data.
      if (!(event instanceof MessageEvent)) return;
      this.#stream = (JSON.parse(String(event.data)) as { stream: string }).stream;
      this.#followed.clear();
      void this.#follow();
    });
    source.addEventListener("beat", () => {
      this.#hear();
      this.#broadcast({ kind: "beat" });
    });
    for (const name of EVENTS) {
      source.addEventListener(name, (event: MessageEvent<string>) => {
        this.#hear();
        this.#dispatch(name, JSON.parse(event.data) as Record<string, unknown>);
      });
    }
    source.onerror = () => {
      this.#close();
      this.#retry = setTimeout(() => this.#connect(), RETRY_MS);
    };
  }

  #hear(): void {
    this.#heardAt = Date.now();
  }

  #close(): void {
    this.#source?.close();
    this.#source = this.#stream = null;
    this.#followed.clear();
    this.#setOpen(false);
  }

  #setOpen(open: boolean): void {
    if (open === this.#open) return;
    this.#open = open;
    this.#broadcast({ kind: "open", open });
  }

  #broadcast(message: ToTab): void {
    for (const post of this.#tabs.keys()) post(message);
  }

  /** Has the service follow what the tabs want, by one request after another: of two at once either may count last. */
  async #follow(): Promise<void> {
    this.#again = true;
    if (this.#telling) return;
    this.#telling = true;
    while (this.#again) {
      this.#again = false;
      await this.#tell();
    }
    this.#telling = false;
  }

  async #tell(): Promise<void> {
    if (this.#tabs.size === 0) {
      this.#close();
      return;
    }
    this.#connect();
    const stream = this.#stream;
    const wanted = new Set([...this.#tabs.values()].flatMap((tab) => [...tab.topics].map(asServed)));
    if (stream === null || (this.#open && isSame(wanted, this.#followed))) return;
    const answer = await fetch(`${ADDRESS}/${stream}`, {
      method: "PUT",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ topics: [...wanted] }),
      signal: AbortSignal.timeout(SILENT_MS),
    }).catch(() => null);
    if (stream !== this.#stream) return;
    if (!answer?.ok) {
      this.#close();
      this.#retry = setTimeout(() => this.#connect(), RETRY_MS);
      return;
    }
    const before = this.#followed;
    this.#followed = wanted;
    this.#setOpen(true);
    for (const [post, tab] of this.#tabs) {
      const started = [...tab.topics].filter((topic) => (
        wanted.has(asServed(topic)) && !before.has(asServed(topic))
      ));
      if (started.length > 0) post({ kind: "started", topics: started });
    }
  }

  #dispatch(name: string, data: Record<string, unknown>): void {
    for (const [post, { topics }] of this.#tabs) if (concerns(name, data, topics)) post({ kind: "event", name, data });
  }
}

function isSame(one: ReadonlySet<string>, other: ReadonlySet<string>): boolean {
  return one.size === other.size && [...one].every((topic) => other.has(topic));
}

/** What the service is asked for a topic: the jobs of one user come with all jobs. */
function asServed(topic: string): string {
  return topic.startsWith("mine:") ? "jobs" : topic;
}

/** Whether an event is about one of the topics. */
export function concerns(name: string, data: Record<string, unknown>, topics: ReadonlySet<string>): boolean {
  if (name === "job") {
    const { id, user } = data.job as { id: string; user: string };
    return topics.has("jobs") || topics.has(`job:${id}`) || topics.has(`mine:${user}`);
  }
  if (name === "metrics") return [...topics].some((topic) => topic.startsWith(`metrics:${String(data.job)}:`));
  return topics.has(name.startsWith("log") ? String(data.topic) : name);
}
