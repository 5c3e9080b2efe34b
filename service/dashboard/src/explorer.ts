import "swagger-ui-dist/swagger-ui.css";
import "./styles/explorer.css";

import type { ReactNode } from "react";
import SwaggerUI from "swagger-ui-dist/swagger-ui-es-bundle";

// The chosen theme, which Swagger UI has under a name of its own.
const root = document.documentElement;
root.classList.toggle("dark-mode", root.dataset.theme === "dark");

/** Paths without a link of their own: each stands within a button, which nothing else may be in. */
function plainPaths({ React }: { React: typeof import("react") }) {
  return { components: { DeepLink: ({ text }: { text: ReactNode }) => React.createElement("span", null, text) } };
}

// Requests carry the session of the dashboard; a token can be given in its place.
SwaggerUI({
  url: "/openapi.json",
  dom_id: "#explorer",
  deepLinking: true,
  docExpansion: "list",
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  filter: true,
  plugins: [plainPaths],
});
