import { Link } from "@tanstack/react-router";

import { Command } from "../ui/Command";

export function FirstJob() {
  return (
    <div className="empty">
      <h2>Nothing has been submitted yet</h2>
      <p className="soft">
        Submit the first job <Link to="/submit">on this site</Link> or from a shell. It shows up here by itself.
      </p>
      <Command text="yard run --gpus 1 -- python train.py" />
      <p className="soft">Or try the built-in trainer on real handwritten digits:</p>
      <Command text="yard submit examples/digits.yaml" />
    </div>
  );
}

export function NothingFound({ onClear }: { onClear: () => void }) {
  return (
    <div className="empty">
      <h2>No job matches</h2>
      <p><button type="button" className="button" onClick={onClear}>Show all jobs</button></p>
    </div>
  );
}
