"""Real folders, each broken on purpose: the finding names it, and its own mend mends it."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support import accounts, disks
from torchyard import home
from torchyard.exceptions import NoRedisError
from torchyard.stack import access, doctor, filesystem, redis

PRIVATE = ("admin.token", "node.token", "service/secrets.key")


class Place(NamedTuple):
    """A stack's folders, as they should be."""

    root: Path
    worker: Path
    settings: Path

    def findings(self) -> list[str]:
        return doctor.findings(self.root, self.worker)


@pytest.fixture
def place(open_tmp: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    made = Place(open_tmp / "home", open_tmp / "home-worker", open_tmp / "etc")
    for folder, mode in ((made.root, 0o700), (made.worker, 0o711), (made.settings, 0o700)):
        folder.mkdir()
        folder.chmod(mode)
    (made.worker / "attempts").mkdir()
    (made.worker / "attempts").chmod(0o711)
    (made.root / "service").mkdir(mode=0o700)
    for path in (*(made.root / name for name in PRIVATE), made.settings / "worker.env"):
        path.touch(mode=0o600)
    monkeypatch.setattr(doctor, "SETTINGS_FOLDER", made.settings)
    monkeypatch.setattr(access, "interpreter_problem", lambda: None)
    monkeypatch.setattr(redis, "find_executable", lambda: "/usr/bin/redis-server")
    return made


def test_which_limits_hold_is_told_as_the_worker_has_said(place: Place) -> None:
    assert doctor.words(place.root, place.worker)[-1] == "limits of jobs: not known, as no worker has started here yet"
    (place.worker / home.LIMITS_FILE).write_text("limits of jobs are not enforced by the kernel: because\n")
    assert doctor.words(place.root, place.worker)[-1].endswith("by the kernel: because")


def test_an_installed_machine_runs_nobodys_jobs_as_root(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert any("your own jobs run as root" in line for line in doctor.words(place.root, place.worker))
    told = doctor.words(place.root, place.worker, installed=True)
    assert any("none as root or as the service's account" in line for line in told)


def test_a_stack_as_it_should_be_has_no_finding(place: Place) -> None:
    assert place.findings() == []


@pytest.mark.parametrize(
    ("broken", "mode"),
    [
        (lambda place: place.root, 0o711),
        (lambda place: place.root / "admin.token", 0o640),
        (lambda place: place.root / "node.token", 0o604),
        (lambda place: place.root / "service" / "secrets.key", 0o640),
        (lambda place: place.settings / "worker.env", 0o644),
    ],
    ids=["home", "admin token", "node token", "key of the secrets", "worker settings"],
)
def test_what_others_could_read_is_found_and_its_mend_helps(
    place: Place, broken: Callable[[Place], Path], mode: int
) -> None:
    path = broken(place)
    path.chmod(mode)
    (finding,) = place.findings()
    assert f"{path} (mode {mode:04o}, owner {os.geteuid()})" in finding
    mend(finding)
    assert place.findings() == []


@accounts.needs_root
@pytest.mark.parametrize(
    ("folder", "mode"), [("", 0o700), ("attempts", 0o700), ("", 0o755), ("attempts", 0o755), ("", 0o731)]
)
def test_folders_that_accounts_cannot_pass_or_could_change(place: Place, folder: str, mode: int) -> None:
    path = place.worker / folder
    path.chmod(mode)
    found = place.findings()
    assert found
    assert all(f"{path} (mode {mode:04o}, owner 0)" in finding for finding in found)
    for finding in found:
        mend(finding)
    assert place.findings() == []


@accounts.needs_root
def test_files_of_other_accounts(place: Place) -> None:
    os.chown(place.settings / "worker.env", 4001, -1)
    os.chown(place.root, 4001, -1)
    owner, exchanged = place.findings()
    assert f"{place.root} (mode 0700, owner 4001) belongs to another account than yours" in owner
    assert f"{place.settings / 'worker.env'} (mode 0600, owner 4001) belongs to another account" in exchanged


def test_what_is_missing_or_full(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_redis() -> str:
        raise NoRedisError

    monkeypatch.setattr(redis, "find_executable", no_redis)
    monkeypatch.setattr(filesystem, "kind", lambda _: "nfs4")
    floors = doctor.Floors(2**60, 2**61)
    network, first, second, last = doctor.findings(place.root, place.worker, floors=floors)
    assert "lies on a network file system (nfs4)" in network
    assert [finding.partition(":")[0] for finding in (first, second)] == [str(place.root), str(place.worker)]
    assert ("less than 1048576.0 TiB" in first, "less than 2097152.0 TiB" in second) == (True, True)
    assert last == str(NoRedisError())
    assert doctor.findings(place.root, place.worker, floors=floors, own_redis=False) == [network, first, second]


def test_a_disk_without_an_inode_is_named_until_it_has_one(place: Place) -> None:
    with disks.small(place.worker.with_name("disk"), 1, inodes=2) as disk:
        disk.chmod(0o711)
        (disk / "file").touch()
        floors = doctor.Floors(0, 0)
        (found,) = doctor.findings(place.root, disk, floors=floors, own_redis=False)
        assert found.startswith(f"{disk} takes no new file (No space left on device)")
        (disk / "file").unlink()
        assert doctor.findings(place.root, disk, floors=floors, own_redis=False) == []


def test_what_did_not_come_to_the_service_is_named_until_it_is_removed(place: Place) -> None:
    kept = place.worker / "unsent" / "att-1"
    kept.mkdir(parents=True)
    (finding,) = place.findings()
    assert finding.startswith(f"{kept.parent}: not all of att-1 came to the service")
    kept.rmdir()
    assert place.findings() == []


def test_the_command_exits_with_1_for_a_finding(open_tmp: Path) -> None:
    home = open_tmp / "home"
    home.mkdir()
    home.chmod(0o755)
    command = [sys.executable, "-m", "torchyard.cli.main", "doctor"]
    environment = {**os.environ, "TORCHYARD_HOME": str(home)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"`chmod 0700 {home}`" in done.stdout
    assert "accounts: " in done.stderr
    data = open_tmp / "data"
    data.mkdir()
    key = data / "secrets.key"
    key.touch(mode=0o644)
    key.chmod(0o644)
    environment |= {"TORCHYARD_DATA": str(data), "TORCHYARD_DISK_FLOOR": "1000000TiB"}
    done = subprocess.run([*command, "--json"], env=environment, capture_output=True, text=True, check=False)
    found = json.loads(done.stdout)["findings"]
    assert any(str(home) in finding for finding in found)
    assert any(f"{data}: " in finding and "no job starts with less than 1000000.0 TiB" in finding for finding in found)
    (told,) = (finding for finding in found if str(key) in finding)
    assert f"{key} (mode 0644" in told
    assert "`python -m service rotate-secrets`" in told


def test_a_key_among_the_settings_is_told_once(place: Place) -> None:
    key = place.settings / "secrets.key"
    key.touch()
    key.chmod(0o640)
    (finding,) = doctor.findings(place.root, place.worker, stores=doctor.Stores(place.root / "service", key))
    assert "rotate-secrets" in finding


def mend(finding: str) -> None:
    """Type what a finding says."""
    for command in re.findall(r"`(ch(?:mod|own) [^`]*)`", finding):
        subprocess.run(command.split(), check=True)


@accounts.needs_root
def test_the_home_of_an_installation_is_its_accounts_and_no_others(place: Place) -> None:
    private = [place.root / name for name in PRIVATE]
    for path in (place.root, *private):
        os.chown(path, 4001, 4001)
    assert doctor.findings(place.root, place.worker, owner=4001) == []
    assert len(doctor.findings(place.root, place.worker, owner=4002)) == 1 + len(private)


@accounts.needs_root
def test_the_key_is_looked_for_where_the_service_keeps_it(place: Place, open_tmp: Path) -> None:
    stores = doctor.Stores(open_tmp / "data", open_tmp / "keys" / "own.key")
    for path in stores:
        path.parent.mkdir(exist_ok=True)
    stores.data.mkdir()
    stores.key.touch(mode=0o600)
    os.chown(stores.key, 4001, -1)
    (finding,) = doctor.findings(place.root, place.worker, stores=stores)
    assert f"{stores.key} (mode 0600, owner 4001) belongs to another account" in finding
