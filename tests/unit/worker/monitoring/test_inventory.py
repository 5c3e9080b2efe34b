"""The node's inventory, beside processes that say what they like of themselves."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.wait import until
from torchyard.injob import layout
from torchyard.wire import Phase
from worker.monitoring import inventory


@contextmanager
def claiming(folder: Path) -> Iterator[None]:
    """A process that says that it belongs to the attempt of this folder."""
    with subprocess.Popen(["sleep", "600"], env={layout.ATTEMPT_DIR: str(folder), "PATH": "/usr/bin:/bin"}) as process:
        try:
            until(lambda: b"sleep" in Path(f"/proc/{process.pid}/cmdline").read_bytes(), what="the process")
            yield
        finally:
            process.kill()


def test_a_folder_that_was_taken_away_is_held_while_a_process_lives(tmp_path: Path) -> None:
    with claiming(tmp_path / "att-1"):
        assert [(each.attempt, each.phase) for each in inventory.whole(tmp_path)] == [("att-1", Phase.RUNNING)]


def test_a_process_cannot_put_what_is_no_attempt_into_the_inventory(tmp_path: Path) -> None:
    """The agent makes a folder's path of each id: one that is none would end every heartbeat."""
    with claiming(tmp_path / "no attempt"):
        assert inventory.whole(tmp_path) == []
