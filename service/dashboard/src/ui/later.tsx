import { CatchBoundary } from "@tanstack/react-router";
import { type ComponentType, lazy, Suspense } from "react";

import { retried } from "../lib/load";
import { Failed } from "./Failed";

type PropsOf<Component> = Component extends ComponentType<infer Props> ? Props : never;

/** A part of a page that is loaded when it is first shown; a message stands in its place where it cannot be. */
export function later<Module extends object, Name extends keyof Module>(load: () => Promise<Module>, name: Name) {
  const Part = lazy(async () => ({ default: (await retried(load))[name] as ComponentType<object> }));
  return function Later(props: PropsOf<Module[Name]> & object) {
    return (
      <CatchBoundary getResetKey={() => 0} errorComponent={Failed}>
        <Suspense><Part {...props} /></Suspense>
      </CatchBoundary>
    );
  };
}
