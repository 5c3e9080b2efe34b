"""Two real ranks of a user's own script."""

import json
from pathlib import Path

from tests.support import ranks
from tests.support.attempt import AttemptFolder


def test_ranks_agree(tmp_path: Path) -> None:
    folder = AttemptFolder(tmp_path / "attempt")
    program = str(Path(__file__).with_name("ranks.py"))
    with ranks.started(ranks.script, 2, program, environment=folder.environment(), cwd=tmp_path) as started:
        started.results()
        said = [started.output(rank) for rank in range(2)]
    first, second = (json.loads((tmp_path / f"agreed-{rank}.json").read_text()) for rank in range(2))
    assert first["checkpoint"] == second["checkpoint"]
    assert first["stop"] == second["stop"]
    assert first["seen_after"] < 30
    assert (first["failed_on_1"], second["failed_on_1"]) == ("OtherRankError", "ValueError")
    assert (first["failed_on_0"], second["failed_on_0"]) == ("ValueError", "OtherRankError")
    assert second["unwritable"] == "OtherRankError"
    assert first["unwritable"] in {"FileExistsError", "NotADirectoryError"}
    assert all(output.count(f"torchyard: stopped at step {first['stop']}") == 1 for output in said)

    kept = folder.checkpoints()
    assert [path.name for path in kept] == [f"step-{first[asked]:09d}" for asked in ("checkpoint", "stop")]
    manifest = json.loads((kept[0] / "manifest.json").read_text())
    assert manifest["files"] == [{"path": "rank-0", "size": 5}, {"path": "rank-1", "size": 5}]
    assert manifest["metrics"] == {"rank": 0.0}
    assert folder.outcome() == {"stopped_at_step": first["stop"]}
