import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/home.css";
import "./styles/jobs.css";
import "./styles/controls.css";
import "./styles/tables.css";
import "./styles/palette.css";

import { I18nProvider } from "@lingui/react";
import { MutationCache, notifyManager, QueryCache, QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";

import { ApiError, isUnauthorized } from "./api/client";
import { SETTINGS_KEY } from "./api/session";
import { learnAdvice } from "./lib/failure";
import { i18n } from "./lib/i18n";
import { noteFailedStyles } from "./lib/load";
import { router } from "./router";

/** A session that has ended anywhere brings the sign-in. */
function onError(error: unknown): void {
  if (isUnauthorized(error)) queries.setQueryData(SETTINGS_KEY, null);
}

// Before the next click, which a timer may come after: a button that sent something twice would submit two jobs.
notifyManager.setScheduler(queueMicrotask);

const queries = new QueryClient({
  queryCache: new QueryCache({ onError }),
  mutationCache: new MutationCache({ onError }),
  defaultOptions: {
    // Also where the browser takes itself for offline: the service may be on this machine, and the outage is told.
    queries: {
      networkMode: "always",
      retry: (count, error) => !(error instanceof ApiError && error.status < 500) && count < 3,
    },
    mutations: { networkMode: "always" },
  },
});

noteFailedStyles(document);
document.documentElement.lang = i18n.locale;
// Here, where it waits for nothing that waits for this: what is loaded needs the modules that this page begins with.
if (i18n.locale !== "en") await learnAdvice();
const root = document.getElementById("root");
if (root === null) throw new Error("index.html has no element #root");
createRoot(root).render(
  <StrictMode>
    <I18nProvider i18n={i18n}>
      <QueryClientProvider client={queries}>
        <RouterProvider router={router} />
      </QueryClientProvider>
    </I18nProvider>
  </StrictMode>,
);
