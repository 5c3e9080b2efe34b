import os
import signal
from pathlib import Path

import pytest

from torchyard.states import STOP_PRECEDENCE
from worker.shim import stop, table, verdict
from worker.shim.verdict import Exit


def failed(rank: int, at: int, code: int | None = 1, number: int | None = None) -> Exit:
    return Exit(rank, code, number, at)


def terminated(rank: int, at: int) -> Exit:
    return Exit(rank, None, signal.SIGTERM, at)


def test_the_first_failure_by_time() -> None:
    assert verdict.first_failure([failed(0, 30), failed(1, 20), Exit(2, 0, None, 10)], None) == failed(1, 20)


def test_what_torchrun_terminated_comes_last() -> None:
    assert verdict.first_failure([terminated(0, 10), failed(1, 20)], None) == failed(1, 20)
    assert verdict.first_failure([terminated(0, 10), terminated(1, 5)], None) == terminated(1, 5)


def test_what_failed_after_our_own_signal_does_not_count() -> None:
    assert verdict.first_failure([terminated(0, 30), failed(1, 31)], 25) is None
    assert verdict.first_failure([terminated(0, 30), failed(1, 20)], 25) == failed(1, 20)


def test_nobody_failed() -> None:
    assert verdict.first_failure([Exit(0, 0, None, 1)], None) is None
    assert verdict.first_failure([], None) is None


@pytest.fixture
def marks(tmp_path: Path) -> Path:
    made = tmp_path / "job" / "marks"
    made.mkdir(parents=True)
    return made


def test_a_rank_whose_wrapper_was_killed(marks: Path) -> None:
    for name, text in {
        "exit-0.json": '{"rank": 0, "exit_code": 1, "signal": null, "ended_us": 20}',
        "exit-0.json.7": '{"rank": 0, "pid": 70}',  # of a wrapper before
        "exit-1.json.8": '{"rank": 1, "pid": 80}' + " " * 400,
        "exit-2.json.9": '{"rank": 2, "pid": 90}',
        "exit-3.json.10": "",
        "exit-9.json.11": '{"rank": 9, "pid": 70}',
    }.items():
        (marks / name).write_text(text)
    orphans = {pid: (int(signal.SIGKILL), at) for pid, at in ((70, 5), (80, 10))}
    owners: set[int | None] = {os.getuid()}
    killed = verdict.killed_exits(str(marks), range(4), owners, orphans)
    assert killed == [failed(1, 10, None, signal.SIGKILL)]
    noted = verdict.marked_exits(str(marks), range(4), owners)
    assert verdict.first_failure([*noted, *killed], None) == killed[0]
    assert verdict.killed_exits(str(marks / "gone"), range(4), owners, orphans) == []


def test_no_link_leads_to_other_marks(marks: Path, tmp_path: Path) -> None:
    """The folder of the marks is the job's user's, and root reads it."""
    others = marks.rename(tmp_path / "others")
    (others / "exit-0.json").write_text('{"exit_code": 1, "ended_us": 20}')
    (others / "exit-1.json.8").write_text('{"pid": 80}')
    marks.symlink_to(others)
    owners: set[int | None] = {os.getuid()}
    assert verdict.marked_exits(str(marks), range(2), owners) == []
    assert verdict.killed_exits(str(marks), range(2), owners, {80: (9, 5)}) == []


def test_wait_statuses() -> None:
    assert verdict.exit_of(3 << 8) == (3, None)
    assert verdict.exit_of(int(signal.SIGKILL)) == (None, signal.SIGKILL)
    assert verdict.exit_of(None) == (None, None)


def test_the_stronger_reason_wins_and_the_earlier_deadline() -> None:
    asked = stop.PendingStop()
    assert not asked
    assert asked.ask("preempt", 60, now=100)
    assert asked.deadline == 160
    assert not asked.ask("drain", 10, now=100)
    assert (asked.reason, asked.deadline) == ("preempt", 110)
    assert asked.ask("cancel", 60, now=105)
    assert (asked.reason, asked.deadline) == ("cancel", 110)
    assert not asked.ask("a reason of a newer service", 60, now=105)


def test_the_precedence_is_the_state_tables() -> None:
    assert {str(reason): rank for reason, rank in STOP_PRECEDENCE.items()} == stop.PRECEDENCE


def test_a_signal_never_reaches_a_later_owner_of_the_pid() -> None:
    own = table.find(table.os.getpid())
    assert own is not None
    own.start_ticks -= 1
    assert not own.send(signal.SIGKILL)
    assert table.find(2**22 + 1) is None
