"""Links of the tree lead to files of the tree: one that leads out of it is somebody's own environment or folder."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_no_link_leads_out_of_the_tree() -> None:
    told = subprocess.run(["git", "ls-files", "--stage"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    links = [ROOT / line.split("\t")[1] for line in told.splitlines() if line.startswith("120000 ")]
    assert links
    assert [link for link in links if not link.resolve().is_relative_to(ROOT)] == []
