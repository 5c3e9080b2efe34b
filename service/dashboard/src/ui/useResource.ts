import { useKnownNodes } from "../api/box";
import { type Resource, resourceOf } from "../lib/resources";

/** The name of what jobs are given here. */
export function useResource(): Resource {
  return resourceOf(useKnownNodes().data?.items ?? []);
}
