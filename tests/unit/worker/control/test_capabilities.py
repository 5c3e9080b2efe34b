from pathlib import Path

import pytest

from torchyard.wire import Capability
from worker.control.capabilities import LIMITS, capabilities


def program(path: Path, code: int) -> Path:
    path.write_text(f"#!/bin/sh\nexit {code}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("mpirun", "answer", "found"), [(True, 0, True), (True, 1, False), (False, 0, False)], ids=["both", "torch", "mpi"]
)
def test_mpi_needs_the_machine_and_the_torch(
    mpirun: bool, answer: int, found: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    if mpirun:
        program(tmp_path / "mpirun", 0)
    words = capabilities(program(tmp_path / "python", answer))
    assert Capability.GPU_SHARE in words
    assert (Capability.MPI in words) is found


def test_a_worker_for_everybody_asks_for_no_accounts(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    assert Capability.UNIX_ACCOUNTS in capabilities(gone)
    assert Capability.UNIX_ACCOUNTS not in capabilities(gone, one_trust_domain=True)


def test_limits_are_told_as_far_as_the_kernel_enforces_them(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    assert LIMITS.isdisjoint(capabilities(gone))
    assert LIMITS.intersection(capabilities(gone, limits=[Capability.MEMORY_LIMIT])) == {Capability.MEMORY_LIMIT}


@pytest.mark.parametrize(("answer", "found"), [(0, True), (1, False)])
def test_networks_of_their_own_are_told_where_one_can_be_made(answer: int, found: bool, tmp_path: Path) -> None:
    words = capabilities(program(tmp_path / "python", answer))
    assert (Capability.NETWORK_ISOLATION in words) is found
    assert Capability.NETWORK_ISOLATION not in capabilities(tmp_path / "gone")


def test_an_interpreter_that_is_gone_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "mpirun", 0)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert Capability.MPI not in capabilities(tmp_path / "gone")
