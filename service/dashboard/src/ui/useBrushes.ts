import { startTransition, useOptimistic, useState } from "react";

import type { Brushes } from "../lib/brushes";

export const ALL: Brushes = {};

interface Result {
  /** The brushes of the address. */
  brushes: Brushes;
  /** The same with the brush that is being drawn, or that the address does not have yet; null where none is. */
  draft: Brushes | null;
  onBrush: (next: Brushes, done: boolean) => void;
}

/** The brushes of a page: its address has them once the pointer is let go. */
export function useBrushes(
  kept: Brushes = ALL, onSearch: (change: { brush: Brushes | undefined }) => Promise<void>,
): Result {
  const [drawn, setDrawn] = useState<Brushes | null>(null);
  const [chosen, setChosen] = useOptimistic(kept);
  const onBrush = (next: Brushes, done: boolean) => {
    setDrawn(done ? null : next);
    if (!done) return;
    startTransition(async () => {
      setChosen(next);
      await onSearch({ brush: Object.keys(next).length > 0 ? next : undefined });
    });
  };
  return { brushes: kept, draft: drawn ?? (chosen === kept ? null : chosen), onBrush };
}
