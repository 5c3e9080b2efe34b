import { Jobs } from "../jobs/Jobs";
import { useTitle } from "../ui/useTitle";
import { Lanes } from "./Lanes";

/** The live box: who has what, and all jobs. */
export function HomePage() {
  useTitle("Home");
  return (
    <>
      <h1 className="hidden-words">Home</h1>
      <Lanes />
      <Jobs />
    </>
  );
}
