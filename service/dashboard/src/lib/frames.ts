/** How long is drawn within a frame, in milliseconds: the browser needs what is left to paint. */
const BUDGET_MS = 8;

/** Draws what is due, in each frame as much as there is time for, and the rest in those to come. */
export class Frames {
  #due = new Set<() => void>();
  #asked = false;

  /** Have something drawn once, however often it is asked for meanwhile; `first`: before what waits longer. */
  ask(draw: () => void, first = false): void {
    if (first) {
      this.#due.delete(draw);
      this.#due = new Set([draw, ...this.#due]);
    } else {
      this.#due.add(draw);
    }
    this.#wait();
  }

  drop(draw: () => void): void {
    this.#due.delete(draw);
  }

  #wait(): void {
    if (this.#asked || this.#due.size === 0) return;
    this.#asked = true;
    requestAnimationFrame(() => {
      this.#asked = false;
      this.#draw();
      this.#wait();
    });
  }

  #draw(): void {
    const until = performance.now() + BUDGET_MS;
    for (const draw of [...this.#due]) {
      this.#due.delete(draw);
      draw();
      if (performance.now() >= until) return;
    }
  }
}
