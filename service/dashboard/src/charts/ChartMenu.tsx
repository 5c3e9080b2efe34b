import { t } from "@lingui/core/macro";
import * as Menu from "@radix-ui/react-dropdown-menu";
import { useState } from "react";

import { Dialog } from "../ui/Dialog";
import { Field } from "../ui/Field";

export type ExportKind = "png" | "svg" | "csv";

/** What can be done with one chart, beside looking at it. */
export interface ChartActions {
  pinned: boolean;
  onPin: () => void;
  /** Absent where the chart fills the screen already. */
  onFull?: () => void;
  /** Bounds of the vertical axis, null for those of the data. */
  range: [number, number] | null;
  onRange: (range: [number, number] | null) => void;
}

interface Props {
  title: string;
  actions: ChartActions;
  onExport: (kind: ExportKind) => void;
}

export function ChartMenu({ title, actions, onExport }: Props) {
  const [asking, setAsking] = useState(false);
  return (
    <>
      <Menu.Root modal={false}>
        <Menu.Trigger className="button small ghost chart-menu" aria-label={t`More for ${title}`}>⋯</Menu.Trigger>
        <Menu.Portal>
          <Menu.Content className="menu" align="end">
            <Item label={actions.pinned ? t`Unpin` : t`Pin to the top`} onSelect={actions.onPin} />
            {actions.onFull !== undefined && <Item label={t`Full screen`} onSelect={actions.onFull} />}
            <Item label={t`Set the vertical range`} onSelect={() => setAsking(true)} />
            {actions.range !== null && <Item label={t`Reset the vertical range`} onSelect={() => actions.onRange(null)} />}
            <Menu.Separator className="menu-line" />
            <Item label={t`Save as PNG`} onSelect={() => onExport("png")} />
            <Item label={t`Save as SVG`} onSelect={() => onExport("svg")} />
            <Item label={t`Save as CSV`} onSelect={() => onExport("csv")} />
          </Menu.Content>
        </Menu.Portal>
      </Menu.Root>
      {asking && <RangeDialog title={title} actions={actions} onClose={() => setAsking(false)} />}
    </>
  );
}

function Item({ label, onSelect }: { label: string; onSelect: () => void }) {
  return <Menu.Item className="menu-item" onSelect={onSelect}>{label}</Menu.Item>;
}

function RangeDialog({ title, actions, onClose }: { title: string; actions: ChartActions; onClose: () => void }) {
  const [low, setLow] = useState(actions.range === null ? "" : String(actions.range[0]));
  const [high, setHigh] = useState(actions.range === null ? "" : String(actions.range[1]));
  const range = [Number(low), Number(high)] as [number, number];
  const valid = low.trim() !== "" && high.trim() !== "" && range[0] < range[1];
  const confirm = () => {
    if (!valid) return;
    actions.onRange(range);
    onClose();
  };
  return (
    <Dialog
      title={t`Vertical range of ${title}`}
      confirm={t`Set it`}
      busy={!valid}
      onConfirm={confirm}
      onClose={onClose}
    >
      <Field label={t({ message: "From", context: "a range" })} inputMode="decimal" value={low} onChange={setLow} />
      <Field label={t({ message: "To", context: "a range" })} inputMode="decimal" value={high} onChange={setHigh} />
    </Dialog>
  );
}
