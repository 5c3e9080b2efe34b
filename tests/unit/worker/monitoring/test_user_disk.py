import json
from pathlib import Path

import pytest

from torchyard import wire
from torchyard.ids import AttemptId
from torchyard.injob import layout
from worker.attempts.folder import AttemptFolder
from worker.monitoring.user_disk import AttemptDisk, UserDisk, choose

GIB = 1 << 30


def usage(attempt: str, user: str, taken: int, grown: int) -> AttemptDisk:
    return AttemptDisk(attempt=AttemptId(attempt), user=user, taken=taken * GIB, grown=grown * GIB)


@pytest.mark.parametrize(
    ("usages", "chosen"),
    [
        ([usage("att-1", "ada", 6, 0), usage("att-2", "ada", 4, 4)], None),
        ([usage("att-1", "ada", 9, 0), usage("att-2", "ada", 2, 1)], "att-2"),
        ([usage("att-1", "ada", 9, 0), usage("att-2", "ada", 2, 0)], "att-1"),
        ([usage("att-1", "ada", 5, -3), usage("att-2", "ada", 6, -1)], "att-2"),
        ([usage("att-1", "ada", 6, 6), usage("att-2", "bob", 90, 90)], None),
    ],
)
def test_the_one_that_grew_most_lately_ends_and_else_the_largest(usages: list[AttemptDisk], chosen: str | None) -> None:
    found = choose(usages, "ada", 10 * GIB)
    assert (found[0].attempt if found else None) == chosen


def folder(root: Path, attempt: str) -> AttemptFolder:
    made = AttemptFolder(root, AttemptId(attempt))
    made.create()
    return made


def test_one_ends_with_the_figures_and_the_others_are_left_alone(tmp_path: Path) -> None:
    first, second, other = (folder(tmp_path, f"att-{number}") for number in range(3))
    disk = UserDisk(lambda: 10 * GIB)
    disk.report(first, "ada", 7 * GIB)
    disk.report(other, "bob", 9 * GIB)
    disk.report(first, "ada", 7 * GIB)
    disk.report(second, "ada", 4 * GIB)
    command = json.loads(second.at(layout.COMMAND).read_text())
    assert (command["action"], command["fingerprint"]) == ("fail", "disk-limit")
    assert command["message"] == (
        "the running jobs of ada took 11.0 GiB of disk on this node together, and those of a user may take 10.0 GiB "
        "(TORCHYARD_USER_DISK_LIMIT); this one took 4.0 GiB and had grown most lately"
    )
    disk.report(second, "ada", 5 * GIB)
    disk.report(first, "ada", 8 * GIB)
    assert (first.read_command(), other.read_command()) == (None, None)


def test_what_has_ended_counts_no_more(tmp_path: Path) -> None:
    first, second = (folder(tmp_path, f"att-{number}") for number in range(2))
    disk = UserDisk(lambda: 10 * GIB)
    disk.report(first, "ada", 7 * GIB)
    first.write_result(wire.Result(kind=wire.ResultKind.EXITED, exit_code=0, ended_us=9))
    disk.report(second, "ada", 7 * GIB)
    assert second.read_command() is None


def test_without_a_limit_nothing_ends(tmp_path: Path) -> None:
    disk = UserDisk()
    attempt = folder(tmp_path, "att-1")
    disk.report(attempt, "ada", 1000 * GIB)
    assert attempt.read_command() is None
