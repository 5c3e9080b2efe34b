import { mayAdminister, useSettings } from "../api/session";
import { useTitle } from "../ui/useTitle";
import { UsersPanel } from "./UsersPanel";

/** Who may use the box, and what they hold. */
export function PeoplePage() {
  useTitle("People");
  return (
    <>
      <h1 className="page-title">People</h1>
      {mayAdminister(useSettings().data)
        ? <UsersPanel />
        : <p className="soft">Administrators see here who may use the box, and add, change and block people.</p>}
    </>
  );
}
