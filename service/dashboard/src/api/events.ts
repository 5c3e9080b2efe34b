/** Pause before a stream is asked for again that the service refused or a proxy ended, in milliseconds. */
const AGAIN_MS = 3_000;

/**
 * Listens to server-sent events until the signal. A hidden page lets go of its connection, because browsers allow six
 * to one server; in sight again it asks anew at the address of that moment.
 */
export function listen(
  address: () => string, handlers: Record<string, (data: string) => void>, signal: AbortSignal,
): void {
  let source: EventSource | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const close = () => {
    clearTimeout(timer);
    source?.close();
  };
  const open = () => {
    close();
    if (document.hidden || signal.aborted) return;
    const made = source = new EventSource(address());
    for (const [name, handle] of Object.entries(handlers)) {
      made.addEventListener(name, (event: MessageEvent<string>) => handle(event.data));
    }
    made.onerror = () => {
      if (made.readyState === EventSource.CLOSED) timer = setTimeout(open, AGAIN_MS);
    };
  };
  open();
  document.addEventListener("visibilitychange", open, { signal });
  signal.addEventListener("abort", close);
}
