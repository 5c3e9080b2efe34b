import { Trans } from "@lingui/react/macro";
import { createRootRoute, createRoute, createRouter, lazyRouteComponent, Link } from "@tanstack/react-router";

import { parseCompare } from "./compare/search";
import { HomePage } from "./home/HomePage";
import { parseChartSettings } from "./lib/chartSettings";
import { retried } from "./lib/load";
import { parseSearch, parseSubmit } from "./lib/search";
import { parseSweep } from "./sweep/search";
import { Failed } from "./ui/Failed";
import { Root } from "./ui/Frame";

function Nowhere() {
  return (
    <div className="empty">
      <h1><Trans>No such page</Trans></h1>
      <p><Link to="/" search={{}}><Trans>Back to the home page</Trans></Link></p>
    </div>
  );
}

const rootRoute = createRootRoute({ component: Root, notFoundComponent: Nowhere });

const homeRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/",
  validateSearch: parseSearch,
  component: HomePage,
});

/** A page that is loaded when it is asked for; its own styles follow those that pages share. */
function page<Module extends object, Name extends keyof Module>(load: () => Promise<Module>, name: Name) {
  return lazyRouteComponent(async () => (await Promise.all([retried(() => import("./styles/pages")), retried(load)]))[1], name);
}

const jobPage = page(() => import("./job/JobPage"), "JobPage");
const boxPage = page(() => import("./box/BoxPage"), "BoxPage");
const sweepPage = page(() => import("./sweep/SweepPage"), "SweepPage");
const auditPage = page(() => import("./audit/AuditPage"), "AuditPage");
const peoplePage = page(() => import("./people/PeoplePage"), "PeoplePage");
const accountPage = page(() => import("./account/AccountPage"), "AccountPage");
const projectsPage = page(() => import("./projects/ProjectsPage"), "ProjectsPage");
const projectPage = page(() => import("./projects/ProjectPage"), "ProjectPage");
const sharingPage = page(() => import("./sharing/SharingPage"), "SharingPage");

const calendarPage = page(() => import("./sharing/CalendarPage"), "CalendarPage");

const jobRoute = createRoute({ getParentRoute: () => rootRoute, path: "/jobs/$jobId", component: jobPage });

/** Drawn by the page of the job, which reads the tab from the address. */
const jobOverviewRoute = createRoute({ getParentRoute: () => jobRoute, path: "/" });
const jobTabRoute = createRoute({ getParentRoute: () => jobRoute, path: "$tab", validateSearch: parseChartSettings });

const sweepRoute = createRoute({
  getParentRoute: () => rootRoute, path: "/sweeps/$sweepId", validateSearch: parseSweep, component: sweepPage,
});

const sharingRoute = createRoute({ getParentRoute: () => rootRoute, path: "/sharing", component: sharingPage });

const calendarRoute = createRoute({ getParentRoute: () => rootRoute, path: "/calendar", component: calendarPage });

const auditRoute = createRoute({ getParentRoute: () => rootRoute, path: "/audit", component: auditPage });

const peopleRoute = createRoute({ getParentRoute: () => rootRoute, path: "/people", component: peoplePage });

const accountRoute = createRoute({ getParentRoute: () => rootRoute, path: "/account", component: accountPage });

const projectsRoute = createRoute({ getParentRoute: () => rootRoute, path: "/projects", component: projectsPage });

const projectRoute = createRoute({ getParentRoute: () => rootRoute, path: "/projects/$project", component: projectPage });

const boxRoute = createRoute({ getParentRoute: () => rootRoute, path: "/box", component: boxPage });

const compareRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/compare",
  validateSearch: parseCompare,
  component: page(() => import("./compare/ComparePage"), "ComparePage"),
});

const submitRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/submit",
  validateSearch: parseSubmit,
  component: page(() => import("./submit/SubmitPage"), "SubmitPage"),
});

const sharedRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/shared/$token",
  validateSearch: parseChartSettings,
  component: page(() => import("./shared/SharedPage"), "SharedPage"),
});

const routeTree = rootRoute.addChildren([
  peopleRoute, accountRoute, projectsRoute, projectRoute,
  homeRoute, jobRoute.addChildren([jobOverviewRoute, jobTabRoute]), sweepRoute, boxRoute, sharingRoute, calendarRoute,
  auditRoute,
  compareRoute, submitRoute, sharedRoute,
]);

export const router = createRouter({ routeTree, defaultPreload: "intent", defaultErrorComponent: Failed });

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
