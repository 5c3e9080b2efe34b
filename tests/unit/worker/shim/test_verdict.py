import signal

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


def test_a_rank_that_vanished() -> None:
    assert verdict.vanished([terminated(0, 10)], range(2)) == 1
    assert verdict.vanished([terminated(4, 10)], range(4, 6)) == 5
    assert verdict.vanished([failed(0, 10)], range(2)) is None
    assert verdict.vanished([terminated(0, 10)], range(3)) is None
    assert verdict.vanished([], range(1)) is None


def test_wait_statuses() -> None:
    assert verdict.exit_of(3 << 8) == (3, None)
    assert verdict.exit_of(int(signal.SIGKILL)) == (None, signal.SIGKILL)
    assert verdict.exit_of(None) == (None, None)


def test_the_stronger_reason_wins_and_the_earlier_deadline() -> None:
    asked = stop.Stop()
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
