/** An item and its row among those that hold at the same time. */
export interface Stacked<Item> {
  item: Item;
  row: number;
}

/** Items by their beginnings, each in the first row that is free; and how many rows there are, one at least. */
export function stack<Item>(
  items: readonly Item[], begins: (item: Item) => number, ends: (item: Item) => number,
): { stacked: Stacked<Item>[]; rows: number } {
  const free: number[] = [];
  const stacked = items.map((item) => {
    const found = free.findIndex((until) => until <= begins(item));
    const row = found < 0 ? free.length : found;
    free[row] = ends(item);
    return { item, row };
  });
  return { stacked, rows: Math.max(1, free.length) };
}
