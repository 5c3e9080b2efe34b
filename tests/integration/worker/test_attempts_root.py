"""Jobs of other UNIX accounts start where `yard install` has put the worker's folder."""

import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import accounts, worker
from tests.support.wait import until
from tests.support.worker import Yard
from torchyard import wire
from torchyard.injob import layout
from torchyard.stack import install

pytestmark = accounts.needs_root


@pytest.fixture
def box(tmp_path: Path, short_tmp: Path, open_tmp: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Yard]:
    monkeypatch.delenv("TORCHYARD_ONE_TRUST_DOMAIN", raising=False)
    with worker.yard(tmp_path, short_tmp) as made:
        made.home = open_tmp / "torchyard-worker"
        made.environment["TORCHYARD_ONE_TRUST_DOMAIN"] = "0"
        made.errors = tmp_path / "worker.log"
        yield made


def install_node(box: Yard, var_lib: Path) -> None:
    """Make the folders as `yard install --join` does, with another folder for /var/lib."""
    for folder in install.node(Path(sys.executable), box.live.url, prefix=var_lib).folders:
        if folder.path.is_relative_to(var_lib / "var/lib"):
            there = box.home / folder.path.relative_to(var_lib / "var/lib/torchyard-worker")
            there.mkdir(exist_ok=True)
            os.chown(there, 0, -1)
            there.chmod(folder.mode)


def run(box: Yard, unix_user: str, command: str) -> tuple[wire.Result, list[str]]:
    attempt = box.fake.assign(["sh", "-c", command], unix_user=unix_user)
    box.send(attempt)
    result = box.settled(attempt)
    return result, box.fake.log(attempt).decode().splitlines()


def test_a_job_of_another_account_starts_where_it_is_installed(box: Yard, open_tmp: Path) -> None:
    install_node(box, open_tmp)
    with accounts.account() as ada:
        box.start()
        result, said = run(box, ada.pw_name, "id -un; echo made > $TORCHYARD_OUTPUT_DIR/x && echo x > $TMPDIR/x")
        assert (result.kind, result.exit_code, said) == (wire.ResultKind.EXITED, 0, [ada.pw_name])
        assert box.attempts.stat().st_mode & 0o777 == 0o711
        # Nor does it see who else has attempts, nor read what the worker keeps for itself.
        result, said = run(box, ada.pw_name, f"ls {box.attempts} {box.home}; cat {box.home}/registration.json; id -un")
        assert len([line for line in said if line.endswith("Permission denied")]) == 3, said
        assert box.stop() == 0
    assert "cannot start here" not in box.errors.read_text()


def test_a_worker_started_from_a_private_shell_lays_out_what_others_can_read(box: Yard, open_tmp: Path) -> None:
    install_node(box, open_tmp)
    before = os.umask(0o077)
    try:
        box.start()
    finally:
        os.umask(before)
    with accounts.account() as ada:
        result, said = run(box, ada.pw_name, f"id -un; ls $TORCHYARD_ATTEMPT_DIR/{layout.LOGS}")
        assert (result.kind, result.exit_code, said[0]) == (wire.ResultKind.EXITED, 0, ada.pw_name), result
        assert box.stop() == 0


def test_a_folder_that_others_cannot_enter_is_named_at_the_start_and_to_whoever_asks(box: Yard) -> None:
    box.home.mkdir(mode=0o700)
    with accounts.account() as ada:
        box.start()
        said = box.errors.read_text()
        assert f"jobs of other accounts cannot start here: they may not enter {box.home} (mode 0700, owner 0)" in said
        assert f"`chmod o+x {box.home}`" in said
        result, _ = run(box, ada.pw_name, "true")
        assert result.kind is wire.ResultKind.UNUSABLE
        assert f"{ada.pw_name} may not enter {box.home} (mode 0700, owner 0)" in (result.message or "")
        # What the error says is the mend.
        subprocess.run(re.findall(r"`(chmod [^`]*)`", said)[0].split(), check=True)
        result, said_by_job = run(box, ada.pw_name, "id -un")
        assert (result.exit_code, said_by_job) == (0, [ada.pw_name])
        assert box.stop() == 0


def give(box: Yard, attempt: str, path: str, data: bytes) -> None:
    """Add a file to the attempt's code."""
    digest = hashlib.sha256(data).hexdigest()
    box.fake.blobs[digest] = data
    code = [wire.FileRef(path=path, size=len(data), sha256=digest)]
    box.fake.launches[attempt] = box.fake.launches[attempt].model_copy(update={"code": code})


def test_the_disk_limit_of_a_user_counts_what_all_their_accounts_hold(box: Yard, open_tmp: Path) -> None:
    install_node(box, open_tmp)
    box.environment["TORCHYARD_USER_DISK_LIMIT"] = "4MiB"
    wait = "while [ ! -e go ]; do sleep 0.1; done"
    fill = "head -c 3000000 /dev/zero > closed/file"
    with accounts.account() as ada, accounts.account() as former, accounts.account() as bob:
        box.start()
        large = {
            account.pw_name: box.fake.assign(
                ["sh", "-c", f"mkdir -m 0700 closed; mv file closed; {wait}"], user=user, unix_user=account.pw_name
            )
            for user, account in (("ada", former), ("bob", bob))
        }
        # The first look at these finds all that they will ever take: whatever grows later is another's.
        for attempt, size in zip(large.values(), (2_000_000, 3_500_000), strict=True):
            give(box, attempt, "file", bytes(size))
            box.send(attempt)
            until(lambda attempt=attempt: attempt in box.fake.running, what="the start")  # type: ignore[misc]
        hidden = f"mkdir closed; chmod 0300 closed; {fill}; {wait}"  # under the limit by itself
        growing = box.fake.assign(["sh", "-c", hidden], unix_user=ada.pw_name)
        box.send(growing)
        result = box.settled(growing, seconds=120)  # a slow look rests longer
        assert "the running jobs of ada took" in (result.message or ""), result
        assert "may take 4.0 MiB (TORCHYARD_USER_DISK_LIMIT)" in (result.message or "")
        assert result.fingerprint == "disk-limit", "which says the mend"
        for account, attempt in large.items():
            (box.attempts / attempt / layout.CODE / "go").touch()
            assert box.settled(attempt).exit_code == 0, account
        assert box.stop() == 0
