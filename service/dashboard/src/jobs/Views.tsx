import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import * as Menu from "@radix-ui/react-dropdown-menu";
import { useState } from "react";

import type { JobsSearch } from "../lib/search";
import { savedViews, saveViews, type View } from "../lib/views";
import { Dialog } from "../ui/Dialog";
import { Field } from "../ui/Field";

interface Props {
  user: string;
  search: JobsSearch;
  onOpen: (search: JobsSearch) => void;
}

/** Searches under names, kept in this browser. */
export function Views({ user, search, onOpen }: Props) {
  const [views, setViews] = useState(() => savedViews(user));
  const [name, setName] = useState<string | null>(null);
  const keep = (next: readonly View[]) => setViews(saveViews(user, next));
  return (
    <>
      <Menu.Root modal={false}>
        <Menu.Trigger className="button small"><Trans>Views</Trans></Menu.Trigger>
        <Menu.Portal>
          <Menu.Content className="menu" align="end" sideOffset={4}>
            {views.length === 0 && (
              <p className="menu-note"><Trans>Save a search with its columns and groups, to come back to it.</Trans></p>
            )}
            {views.map((view) => (
              <div key={view.name} className="menu-pair">
                <Menu.Item className="menu-item" onSelect={() => onOpen(view.search)}>{view.name}</Menu.Item>
                <Menu.Item
                  className="menu-item faint"
                  aria-label={t`Forget the view ${{ name: view.name }}`}
                  onSelect={() => keep(views.filter((one) => one !== view))}
                >
                  ×
                </Menu.Item>
              </div>
            ))}
            <Menu.Separator className="menu-line" />
            <Menu.Item className="menu-item" onSelect={() => setName("")}><Trans>Save this view…</Trans></Menu.Item>
          </Menu.Content>
        </Menu.Portal>
      </Menu.Root>
      {name !== null && (
        <Dialog
          title={t`Save this view`}
          confirm={t`Save it`}
          onConfirm={() => {
            keep([...views, { name: name.trim(), search }]);
            setName(null);
          }}
          onClose={() => setName(null)}
        >
          <Field label={t`Name`} required maxLength={60} value={name} onChange={setName} />
        </Dialog>
      )}
    </>
  );
}
