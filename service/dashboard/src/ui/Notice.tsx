import { explain } from "../api/client";
import { Coded } from "./Coded";

/** What went wrong, in the service's own words. */
export function Notice({ error }: { error: unknown }) {
  if (error === null || error === undefined) return null;
  return <p className="notice" role="alert"><Coded text={explain(error)} /></p>;
}
