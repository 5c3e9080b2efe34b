/** Height of a line in pixels, as `.log-line` has it. */
export const LINE = 18;
/** A page cannot be higher than some millions of pixels: of longer logs a pixel of the scrollbar is several lines. */
export const MOST_PIXELS = 8_000_000;

/** What is scrolled: an element, as far as it matters here. */
export type ScrollBox = Pick<HTMLElement, "clientHeight" | "scrollTop">;

/** The wheel, as far as it matters here. */
export type Wheel = Pick<WheelEvent, "ctrlKey" | "deltaY" | "preventDefault">;

/**
 * Where a log is scrolled to, in pixels of its lines; the scrollbar of a very long one is coarser than the wheel.
 * Follows the end until the reader scrolls up.
 */
export class Scroller {
  following = true;
  top = 0;
  #lines = 0;
  #box: ScrollBox;
  /** Where the scrollbar was when it was last set or read. */
  #known: number | null = null;
  #onChange: (scroller: Scroller) => void;

  constructor(box: ScrollBox, onChange: (scroller: Scroller) => void) {
    this.#box = box;
    this.#onChange = onChange;
  }

  get height(): number {
    return this.#box.clientHeight;
  }

  get #most(): number {
    return Math.max(0, this.#lines * LINE - this.height);
  }

  /** Pixels that the scrollbar can move. */
  get #bar(): number {
    return Math.max(1, Math.min(this.#lines * LINE, MOST_PIXELS) - this.height);
  }

  get #isCoarse(): boolean {
    return this.#lines * LINE > MOST_PIXELS;
  }

  go(top: number): void {
    this.#place(Math.min(Math.max(0, top), this.#most));
    this.#box.scrollTop = this.#most === 0 ? 0 : Math.round(this.top / this.#most * this.#bar);
    this.#known = this.#box.scrollTop;
  }

  /** The log has so many lines now. The reader may have scrolled, of which the browser tells in its next frame. */
  grow(lines: number): void {
    this.read();
    this.#lines = lines;
    this.refresh();
  }

  /** Shows the same again, or the end that has moved. */
  refresh(): void {
    this.go(this.following ? Infinity : this.top);
  }

  /** The scrollbar or the keyboard has moved. */
  read(): void {
    const { scrollTop } = this.#box;
    if (scrollTop === this.#known) return;
    this.#known = scrollTop;
    this.#place(this.#isCoarse ? scrollTop / this.#bar * this.#most : scrollTop);
  }

  wheel(event: Wheel): void {
    if (!this.#isCoarse || event.ctrlKey || event.deltaY === 0) return;
    event.preventDefault();
    this.go(this.top + event.deltaY);
  }

  #place(top: number): void {
    this.top = top;
    this.following = top >= this.#most - LINE;
    this.#onChange(this);
  }
}
