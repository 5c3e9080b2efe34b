import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import * as Menu from "@radix-ui/react-dropdown-menu";

import { type Column, COLUMNS } from "../lib/columns";
import { METRIC_ORDERS, metricOf, type Order, orderOf, ORDERS } from "../lib/orders";
import { type Grouping, GROUPINGS } from "../lib/search";
import { useResource } from "../ui/useResource";
import { sentence } from "../lib/format";

const GROUPS: Record<Grouping, string> = { user: t`user`, project: t`project`, sweep: t`sweep`, tag: t`tag` };

interface Props {
  by: Grouping | undefined;
  order: Order;
  columns: readonly Column[];
  /** Metrics that the jobs in view have. */
  metrics: readonly string[];
  onBy: (by: Grouping | undefined) => void;
  onOrder: (order: Order) => void;
  onColumn: (column: Column) => void;
}

/** What the list is grouped by, its order, and its columns. */
export function TableTools({ by, order, columns, metrics, onBy, onOrder, onColumn }: Props) {
  const named = metricOf(order);
  const names = named === null || metrics.includes(named) ? metrics : [...metrics, named];
  const { many } = useResource();
  return (
    <>
      <label className="tool">
        <span><Trans>Group by</Trans></span>
        <select value={by ?? ""} onChange={({ target }) => onBy(GROUPINGS.find((one) => one === target.value))}>
          <option value=""><Trans>state</Trans></option>
          {GROUPINGS.map((one) => <option key={one} value={one}>{GROUPS[one]}</option>)}
        </select>
      </label>
      <label className="tool">
        <span><Trans>Order</Trans></span>
        <select value={order} onChange={({ target }) => onOrder(orderOf(target.value))}>
          {ORDERS.map(({ key, label }) => <option key={key} value={key}>{label}</option>)}
          {names.map((name) => (
            <optgroup key={name} label={name}>
              {METRIC_ORDERS.map(({ key, words }) => <option key={key} value={`${key}:${name}`}>{words(name)}</option>)}
            </optgroup>
          ))}
        </select>
      </label>
      <Menu.Root modal={false}>
        <Menu.Trigger className="button small"><Trans>Columns</Trans></Menu.Trigger>
        <Menu.Portal>
          <Menu.Content className="menu" align="end" sideOffset={4}>
            {COLUMNS.map(({ key, label }) => (
              <Menu.CheckboxItem
                key={key}
                className="menu-item"
                checked={columns.includes(key)}
                onCheckedChange={() => onColumn(key)}
                onSelect={(event) => event.preventDefault()}
              >
                <span className="menu-mark"><Menu.ItemIndicator>✓</Menu.ItemIndicator></span>
                {label === "" ? sentence(many) : label}
              </Menu.CheckboxItem>
            ))}
          </Menu.Content>
        </Menu.Portal>
      </Menu.Root>
    </>
  );
}
