import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";

import { useSettings } from "../api/session";
import { later } from "../ui/later";
import { useTitle } from "../ui/useTitle";
import { Attention } from "./Attention";
import { Lanes } from "./Lanes";
import { Mine } from "./Mine";
import { useHours } from "./useHours";

const Jobs = later(() => import("../jobs/Jobs"), "Jobs");

/** The live box: the viewer's jobs, what is wrong, who has what, and all jobs. */
export function HomePage() {
  useTitle(t`Home`);
  const [hours, setHours] = useHours();
  const user = useSettings().data?.user.name;
  return (
    <>
      <h1 className="hidden-words"><Trans>Home</Trans></h1>
      <div className="home-top">
        {user !== undefined && <Mine user={user} hours={Number(hours)} />}
        <Attention />
      </div>
      <Lanes hours={hours} onHours={setHours} />
      <Jobs />
    </>
  );
}
