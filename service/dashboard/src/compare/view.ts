import { zoomed } from "../charts/keys";
import type { Range } from "../lib/buckets";

type Listener = (range: Range | null) => void;

/** The part of the axis that all charts show. Charts follow it by themselves, so that moving it renders no page. */
export class View {
  range: Range | null = null;
  #listeners = new Set<Listener>();

  subscribe(listener: Listener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  show(range: Range | null): void {
    this.range = range;
    this.#listeners.forEach((listener) => listener(range));
  }

  /** Shows `factor` times as much, around a place from 0 (left) to 1. */
  zoom(shown: Range, factor: number, at: number): void {
    this.show(zoomed(shown, factor, at));
  }
}
