"""Answers of ``systemctl show`` as systemd 252 has given them, by a program of that name."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from torchyard.stack import systemd

ANSWER = "ActiveState={state}\nActiveEnterTimestampMonotonic={since}\nNRestarts={restarts}\nId={unit}\n"
Says = Callable[..., list[str]]


@pytest.fixture
def says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Says:
    """What is found if systemd tells this of the units, each ``(state, restarts, seconds since)``."""
    program, answer = tmp_path / "systemctl", tmp_path / "answer"
    program.write_text(f'#!/bin/sh\necho "$*" >> {tmp_path}/asked\ncat {answer}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(systemd, "BOOTED", tmp_path)

    def found(*units: tuple[str, int, float], own: bool = False) -> list[str]:
        names = [f"unit{number}.service" for number in range(len(units))]
        now = time.clock_gettime(time.CLOCK_MONOTONIC)
        blocks = [
            ANSWER.format(state=state, restarts=restarts, since=int((now - age) * 1e6), unit=name)
            for (state, restarts, age), name in zip(units, names, strict=True)
        ]
        answer.write_text("\n".join(blocks))
        return list(systemd.findings(names, own=own))

    return found


def test_units_that_run_are_no_finding(says: Says) -> None:
    assert says(("active", 0, 5), ("active", 1, 5), ("active", 7, 86_400)) == []


def test_a_unit_that_does_not_run_is_named_with_where_to_read_why(says: Says) -> None:
    (finding,) = says(("active", 0, 5), ("failed", 0, 0))
    assert finding == (
        "unit1.service does not run (failed): `systemctl start unit1.service`; `journalctl -u unit1.service` says why"
    )


def test_one_that_ends_again_and_again_is_named_though_it_runs_at_the_moment(says: Says) -> None:
    (finding,) = says(("active", 12, 2))
    assert finding.startswith("unit0.service ends again and again (started 12 times anew, last 2 s ago): `journalctl")


def test_units_of_a_user_are_asked_of_their_own_systemd(says: Says, tmp_path: Path) -> None:
    (finding,) = says(("inactive", 0, 0), own=True)
    assert "`systemctl --user start unit0.service`; `journalctl --user -u unit0.service`" in finding
    assert (tmp_path / "asked").read_text().startswith("--user show ")


def test_nothing_is_asked_where_systemd_does_not_run_the_machine(
    says: Says, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(systemd, "BOOTED", tmp_path / "none")
    assert says(("failed", 0, 0)) == []
    assert not (tmp_path / "asked").exists()
