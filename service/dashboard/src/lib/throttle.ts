/** Calls by name that happen at once, and then no more than once in so many milliseconds. */
export class Throttle {
  #waiting = new Map<string, (() => void) | null>();

  run(name: string, everyMs: number, call: () => void): void {
    if (this.#waiting.has(name)) {
      this.#waiting.set(name, call);
      return;
    }
    this.#waiting.set(name, null);
    setTimeout(() => {
      const again = this.#waiting.get(name);
      this.#waiting.delete(name);
      if (again) this.run(name, everyMs, again);
    }, everyMs);
    call();
  }
}
