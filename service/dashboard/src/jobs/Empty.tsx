import { Trans } from "@lingui/react/macro";
import { Link } from "@tanstack/react-router";

import { Command } from "../ui/Command";

export function FirstJob() {
  return (
    <div className="empty">
      <h2><Trans>Nothing has been submitted yet</Trans></h2>
      <p className="soft">
        <Trans>
          Submit the first job <Link to="/submit">on this site</Link> or from a shell. It shows up here by itself.
        </Trans>
      </p>
      <Command text="yard run --gpus 1 -- python train.py" />
      <p className="soft"><Trans>Or try the built-in trainer on real handwritten digits:</Trans></p>
      <Command text="yard submit examples/digits.yaml" />
    </div>
  );
}

export function NothingFound({ onClear }: { onClear: () => void }) {
  return (
    <div className="empty">
      <h2><Trans>No job matches</Trans></h2>
      <p><button type="button" className="button" onClick={onClear}><Trans>Show all jobs</Trans></button></p>
    </div>
  );
}
