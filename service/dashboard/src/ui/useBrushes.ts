import { useState } from "react";

import type { Brushes } from "../lib/brushes";

export const ALL: Brushes = {};

interface Result {
  /** The brushes of the address. */
  brushes: Brushes;
  /** The same with the brush that is being drawn; null where none is. */
  draft: Brushes | null;
  onBrush: (next: Brushes, done: boolean) => void;
}

/** The brushes of a page: its address has them once the pointer is let go. */
export function useBrushes(
  kept: Brushes | undefined, onSearch: (change: { brush: Brushes | undefined }) => Promise<void>,
): Result {
  const [draft, setDraft] = useState<Brushes | null>(null);
  const onBrush = (next: Brushes, done: boolean) => {
    setDraft(next);
    if (done) void onSearch({ brush: Object.keys(next).length > 0 ? next : undefined }).then(() => setDraft(null));
  };
  return { brushes: kept ?? ALL, draft, onBrush };
}
