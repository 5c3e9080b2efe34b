import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import * as Menu from "@radix-ui/react-dropdown-menu";
import { Link } from "@tanstack/react-router";

import { useSignOut } from "../api/session";
import { useTheme } from "../lib/theme";
import { otherLanguages, switchLanguage } from "./languages";
import type { PageLink } from "./pages";

/** All that the bar at the top leads to, where it has no room for it. */
export default function PageMenu({ pages, name }: { pages: readonly PageLink[]; name: string }) {
  const [theme, toggle] = useTheme();
  const signOut = useSignOut();
  return (
    <Menu.Root modal={false}>
      <Menu.Trigger className="button small ghost" aria-label={t`Menu`}>
        <svg viewBox="0 0 20 20" width="20" height="20" aria-hidden="true" fill="none" stroke="currentColor" strokeWidth="1.7">
          <path d="M2 5h16M2 10h16M2 15h16" />
        </svg>
      </Menu.Trigger>
      <Menu.Portal>
        <Menu.Content className="menu page-menu" align="end" sideOffset={8}>
          {pages.map(({ to, label }) => (
            <Menu.Item key={to} asChild className="menu-item"><Link to={to} search={{}}>{label}</Link></Menu.Item>
          ))}
          <Menu.Separator className="menu-line" />
          <Menu.Item asChild className="menu-item"><Link to="/account"><Trans>Account of {name}</Trans></Link></Menu.Item>
          <Menu.Item className="menu-item" onSelect={toggle}>{theme === "dark" ? t`Light theme` : t`Dark theme`}</Menu.Item>
          {otherLanguages().map(({ key, label }) => (
            <Menu.Item key={key} lang={key} className="menu-item" onSelect={() => switchLanguage(key)}>{label}</Menu.Item>
          ))}
          <Menu.Item className="menu-item" onSelect={() => void signOut()}><Trans>Sign out</Trans></Menu.Item>
        </Menu.Content>
      </Menu.Portal>
    </Menu.Root>
  );
}
