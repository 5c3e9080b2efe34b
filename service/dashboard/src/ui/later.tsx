import { CatchBoundary } from "@tanstack/react-router";
import { type ComponentType, lazy, Suspense } from "react";

import { retried } from "../lib/load";
import { Failed } from "./Failed";

type PropsOf<Component> = Component extends ComponentType<infer Props> ? Props : never;

/**
 * A part of a page that is loaded when it is first shown. `Waiting`, if any, stands in its place until then, and a
 * message where it cannot be loaded.
 */
export function later<Module extends object, Name extends keyof Module>(
  load: () => Promise<Module>, name: Name, Waiting?: ComponentType<PropsOf<Module[Name]>>,
) {
  const Part = lazy(async () => ({ default: (await retried(load))[name] as ComponentType<object> }));
  return function Later(props: PropsOf<Module[Name]> & object) {
    return (
      <CatchBoundary getResetKey={() => 0} errorComponent={Failed}>
        <Suspense fallback={Waiting && <Waiting {...props} />}><Part {...props} /></Suspense>
      </CatchBoundary>
    );
  };
}
