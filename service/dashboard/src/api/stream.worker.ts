/// <reference lib="webworker" />
import { type FromTab, type Post, StreamHub } from "./streamHub";

/** Holds the stream of all tabs: a browser allows six connections to one server. */
const hub = new StreamHub();

(self as unknown as SharedWorkerGlobalScope).addEventListener("connect", (event) => {
  const [port] = event.ports;
  if (port === undefined) return;
  const post: Post = (message) => port.postMessage(message);
  port.addEventListener("message", ({ data }: MessageEvent<FromTab>) => hub.receive(post, data));
  port.start();
});
