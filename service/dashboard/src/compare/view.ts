import { zoomed } from "../charts/keys";
import type { Range } from "../lib/buckets";
import { Frames } from "../lib/frames";

type Listener = (range: Range | null, mover: unknown) => void;

/** The part of the axis that all charts show. Charts follow it by themselves, so that moving it renders no page. */
export class View {
  range: Range | null = null;
  readonly frames = new Frames();
  #listeners = new Set<Listener>();

  subscribe(listener: Listener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Shows a part; `mover` is the chart under the pointer that moves it, which is drawn first. */
  show(range: Range | null, mover?: unknown): void {
    this.range = range;
    this.#listeners.forEach((listener) => listener(range, mover));
  }

  /** Shows `factor` times as much, around a place from 0 (left) to 1. */
  zoom(shown: Range, factor: number, at: number, mover?: unknown): void {
    this.show(zoomed(shown, factor, at), mover);
  }
}
