import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Link, Outlet, useLocation } from "@tanstack/react-router";

import { useLive } from "../api/live";
import { useOutage } from "../api/outage";
import { mayAdminister, useSettings, useSignOut } from "../api/session";
import { Shortcuts } from "../palette/Shortcuts";
import { LanguageSwitch } from "./LanguageSwitch";
import { later } from "./later";
import { Notice } from "./Notice";
import { OutageBanner } from "./OutageBanner";
import { type PageLink, pagesOf } from "./pages";
import { ThemeToggle } from "./ThemeToggle";
import { useNarrow } from "./useNarrow";

const LoadingBar = later(() => import("./LoadingBar"), "LoadingBar");
const NoticeBanner = later(() => import("./NoticeBanner"), "NoticeBanner");
const Bell = later(() => import("../bell/Bell"), "default");
const SignIn = later(() => import("../session/SignIn"), "SignIn");
const SignInLink = later(() => import("../session/SignInLink"), "default");
const PageMenu = later(() => import("./PageMenu"), "default");

/** Every page; one of a public link asks for no sign-in and leads nowhere else. */
export function Root() {
  const linked = useLocation({ select: ({ pathname }) => pathname.startsWith("/shared/") });
  return (
    <>
      <LoadingBar />
      {linked ? <Outlet /> : <Frame />}
    </>
  );
}

/** The frame of every page, or the sign-in while nobody is signed in. */
function Frame() {
  const settings = useSettings();
  const outage = useOutage();
  const narrow = useNarrow();
  useLive(settings.data?.user.id);
  const invited = useLocation({ select: ({ hash }) => hash.startsWith("login=") });
  if (settings.data === null) return <SignIn />;
  if (settings.data === undefined) return <main className="page"><Notice error={settings.error} /></main>;
  const pages = pagesOf(mayAdminister(settings.data));
  return (
    <>
      <a className="skip" href="#content"><Trans>Skip to content</Trans></a>
      <header className="top">
        <Link to="/" search={{}} className="brand" aria-label="TorchYard">
          <img src="/mark.svg" alt="" width="28" height="28" />
          <span>TorchYard</span>
        </Link>
        {!narrow && (
          <nav aria-label={t`Pages`}>
            {pages.map(({ to, label }) => (
              <Link key={to} to={to} search={{}} activeOptions={{ includeSearch: false, exact: to === "/" }}>{label}</Link>
            ))}
          </nav>
        )}
        <Person name={settings.data.user.name} pages={narrow ? pages : null} />
      </header>
      <OutageBanner />
      {invited && <SignInLink name={settings.data.user.name} />}
      <NoticeBanner />
      <main id="content" className="page" tabIndex={-1} data-stale={outage !== null || undefined}><Outlet /></main>
      <footer className="foot">TorchYard {settings.data.version} · <a href="/docs">{t`REST API`}</a></footer>
    </>
  );
}

/** What is the viewer's own; the pages are in its menu where the bar has no room for them. */
function Person({ name, pages }: { name: string; pages: readonly PageLink[] | null }) {
  return (
    <div className="person">
      <Shortcuts />
      <Bell key={name} user={name} />
      {pages === null
        ? <Account name={name} />
        : <PageMenu pages={pages} name={name} />}
    </div>
  );
}

function Account({ name }: { name: string }) {
  const signOut = useSignOut();
  return (
    <>
      <LanguageSwitch />
      <ThemeToggle />
      <Link to="/account" className="person-name" title={t`Your tokens and secrets`}>{name}</Link>
      <button type="button" className="button small ghost" onClick={() => void signOut()}><Trans>Sign out</Trans></button>
    </>
  );
}
