/** The part of Swagger UI's options that is used; the package brings no types. */
declare module "swagger-ui-dist/swagger-ui-es-bundle" {
  export default function SwaggerUI(options: {
    url: string;
    dom_id: string;
    deepLinking: boolean;
    docExpansion: "none" | "list" | "full";
    defaultModelsExpandDepth: number;
    displayRequestDuration: boolean;
    filter: boolean;
    plugins: ((system: { React: typeof import("react") }) => { components: Record<string, unknown> })[];
  }): unknown;
}
