"""A backup that is made while the service writes, and its way back, on both databases."""

import json
import os
import shutil
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, make_url, select, text

from service.backup import manifest
from service.backup.create import create
from service.backup.exceptions import BackupError
from service.backup.restore import restore
from service.db.engine import Database
from service.db.models import Blob, Job, MetricPoint
from service.db.schema import migrate
from service.settings import ServiceSettings
from tests.support import accounts, postgres
from tests.support.live import Live, running, settings_for
from tests.support.plane import Plane, batch, plane
from torchyard import home
from torchyard.stack import instance


@pytest.fixture(autouse=True)
def postgres_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client programs of the tests' server come first: those of the machine may be older."""
    monkeypatch.setenv("PATH", f"{postgres.programs()}{os.pathsep}{os.environ['PATH']}")


@pytest.fixture
def other(
    request: pytest.FixtureRequest, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[], ServiceSettings]]:
    """Settings of an empty home on another machine, which becomes this process's."""

    def settings(url: str) -> ServiceSettings:
        monkeypatch.setenv("TORCHYARD_HOME", str(tmp_path / "other"))
        return settings_for(url, tmp_path / "other")

    if database_url.startswith("sqlite"):
        yield lambda: settings(f"sqlite:///{tmp_path / 'other' / 'service' / 'torchyard.db'}")
        return
    with request.getfixturevalue("postgres_server").database() as url:
        yield lambda: settings(url)


@contextmanager
def writing(made: Plane) -> Iterator[list[int]]:
    """A node that goes on sending checkpoints, logs and points of a job until the end of the block."""
    seeded, steps, done = made.job(), [], threading.Event()

    def write() -> None:
        for step in range(1, 10_000):
            made.log(seeded, 6 * (step - 1), b"hello\n")
            assert made.post(seeded, "metrics", batch(step - 1, [step], loss=1.0 / step)).is_success
            made.checkpoint(seeded, step, {"model.pt": b"%d" % step * 100})
            steps.append(step)
            if done.is_set():
                return

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield steps
    finally:
        done.set()
        thread.join(60)


def settings_of(live: Live) -> ServiceSettings:
    return live.context.settings


def facts(url: str) -> dict[str, Any]:
    db = Database(url)
    with db.read() as tx:
        found = {
            "jobs": tx.scalar(select(func.count()).select_from(Job)),
            "points": tx.scalar(select(func.count()).select_from(MetricPoint)),
            "hashes": set(tx.scalars(select(Blob.sha256))),
        }
    db.dispose()
    return found


def test_a_backup_of_a_busy_service_is_whole_and_comes_back(
    serve: Callable[..., Any], other: Callable[[], ServiceSettings], tmp_path: Path
) -> None:
    target = tmp_path / "kept"
    with serve() as live, plane(live) as made:
        seeded = made.job()
        made.log(seeded, 0, b"a line\n")
        made.post(seeded, "metrics", batch(0, [1, 2], loss=0.5))
        content = made.checkpoint(seeded, 1, {"model.pt": b"weights" * 100})
        with writing(made) as steps:
            for number in range(100):  # how often a write falls into a backup depends on the load
                before = len(steps)
                written = create(settings_of(live), target)
                assert written.missing_blobs == []
                if number >= 2 and len(steps) > before:
                    break
            assert len(steps) > before, "nothing was written meanwhile, so the test shows nothing"
        assert stat.S_IMODE(target.stat().st_mode) == 0o700
        kept = {path.name: path.stat().st_ino for path in (target / "artifacts" / "blobs").glob("??/*")}
        stored = {path.name: path.stat().st_ino for path in live.context.store.blobs.glob("??/*")}
        assert kept.items() & stored.items(), "blobs are linked"
    settings = other()
    restored = restore(settings, target)
    assert restored.aside is None
    assert restored.manifest == manifest.read(target)
    found = facts(settings.database_url)
    assert found["jobs"] == 2
    assert found["points"] >= 2 + before
    assert all((settings.artifacts / "blobs" / each[:2] / each).is_file() for each in found["hashes"])
    with running(settings) as live:
        answer = live.client.get(f"/api/v1/jobs/{seeded.job}/logs", params={"rank": 0})
        assert answer.text == "a line\n"
        listed = live.client.get(f"/api/v1/jobs/{seeded.job}/checkpoints").json()
        assert [each["id"] for each in listed] == [content.checkpoint]
        assert live.context.installation == restored.manifest.installation


def test_an_archive_comes_back(serve: Callable[..., Any], other: Callable[[], ServiceSettings], tmp_path: Path) -> None:
    archive = tmp_path / "kept.tar.gz"
    with serve() as live, plane(live) as made:
        seeded = made.job()
        made.checkpoint(seeded, 1, {"model.pt": b"weights"})
        create(settings_of(live), archive)
        assert [path.name for path in settings_of(live).data.iterdir() if path.name.startswith(".")] == []
    assert stat.S_IMODE(archive.stat().st_mode) == 0o600
    settings = other()
    restore(settings, archive)
    found = facts(settings.database_url)
    (sha256,) = found["hashes"]
    assert (settings.artifacts / "blobs" / sha256[:2] / sha256).read_bytes() == b"weights"


def test_a_second_backup_brings_only_what_is_new_and_drops_what_is_gone(
    serve: Callable[..., Any], tmp_path: Path
) -> None:
    with serve() as live, plane(live) as made:
        seeded = made.job()
        made.checkpoint(seeded, 1, {"model.pt": b"one"})
        create(settings_of(live), tmp_path / "kept")
        kept = sorted((tmp_path / "kept" / "artifacts" / "blobs").glob("??/*"))
        created = [path.stat().st_ino for path in kept]
        made.checkpoint(seeded, 2, {"model.pt": b"two"})
        create(settings_of(live), tmp_path / "kept")
        assert [path.stat().st_ino for path in kept] == created
        assert manifest.read(tmp_path / "kept").blobs == 2
        with live.context.db.write() as tx:
            tx.execute(text("DELETE FROM blobs WHERE sha256 = :name"), {"name": kept[0].name})
        create(settings_of(live), tmp_path / "kept")
        assert not kept[0].exists()


def test_keys_are_named_and_taken_only_when_asked(
    serve: Callable[..., Any], other: Callable[[], ServiceSettings], tmp_path: Path
) -> None:
    with serve() as live:
        home.write_private(home.root() / "service" / "secrets.key", "0123")
        without = create(settings_of(live), tmp_path / "without")
        with_keys = create(settings_of(live), tmp_path / "with", with_keys=True)
    assert (without.keys, without.keys_included) == (["service/secrets.key"], False)
    assert not (tmp_path / "without" / "keys").exists()
    assert with_keys.keys_included
    settings = other()
    assert restore(settings, tmp_path / "with").keys_wanted == []
    key = home.root() / "service" / "secrets.key"
    assert (key.read_text(), stat.S_IMODE(key.stat().st_mode)) == ("0123", 0o600)


def test_a_key_that_is_wanted_is_named(
    serve: Callable[..., Any], other: Callable[[], ServiceSettings], tmp_path: Path
) -> None:
    with serve() as live:
        home.write_private(home.root() / "service" / "secrets.key", "0123")
        create(settings_of(live), tmp_path / "kept")
    assert restore(other(), tmp_path / "kept").keys_wanted == ["service/secrets.key"]


def test_a_running_service_is_never_restored_over(serve: Callable[..., Any], tmp_path: Path) -> None:
    with serve() as live:
        create(settings_of(live), tmp_path / "kept")
        lock = instance.Instance(home.root())
        lock.acquire()
        lock.announce(live.url)
        try:
            with pytest.raises(BackupError, match="already running"):
                restore(settings_of(live), tmp_path / "kept", replace=True)
        finally:
            lock.release()


@accounts.needs_root
def test_root_restores_nothing_that_the_services_account_could_not_read(
    other: Callable[[], ServiceSettings], tmp_path: Path
) -> None:
    settings = other()
    home.root().mkdir(exist_ok=True)
    os.chown(home.root(), 54321, -1)
    with pytest.raises(BackupError, match=r"belongs to #54321, .*sudo -u"):
        restore(settings, tmp_path)


def test_a_service_that_was_started_alone_is_noticed(serve: Callable[..., Any], tmp_path: Path) -> None:
    with serve() as live:
        create(settings_of(live), tmp_path / "kept")
        program = [sys.executable, "-c", "import sys; print(flush=True); sys.stdin.read()", "service"]
        with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()  # before that it may still have this process's command line
            home.write_private(home.address_file(), json.dumps({"url": live.url, "pid": process.pid}))
            with pytest.raises(BackupError, match=f"a service runs here .process {process.pid}"):
                restore(settings_of(live), tmp_path / "kept", replace=True)


def test_newer_tables_are_refused_and_older_ones_migrated(
    serve: Callable[..., Any], other: Callable[[], ServiceSettings], tmp_path: Path
) -> None:
    with serve() as live, plane(live) as made:
        made.job()
        create(settings_of(live), tmp_path / "kept")
    newer = replace(manifest.read(tmp_path / "kept"), schema="9999", version="9.9")
    shutil.copytree(tmp_path / "kept", tmp_path / "newer")
    manifest.write(tmp_path / "newer", newer)
    settings = other()
    with pytest.raises(BackupError, match=r"made by TorchYard 9\.9, whose tables are newer"):
        restore(settings, tmp_path / "newer")
    assert not settings.data.exists()


def test_older_tables_are_migrated(
    empty_database_url: str, yard_home: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    migrate(empty_database_url, "0010")
    db = Database(empty_database_url)
    with db.write() as tx:
        tx.execute(text("INSERT INTO installation (key, value) VALUES ('id', 'yard_old')"))
    db.dispose()
    written = create(settings_for(empty_database_url, yard_home), tmp_path / "kept")
    assert written.schema == "0010"
    with _another(empty_database_url, tmp_path, request) as url:
        restore(settings_for(url, yard_home), tmp_path / "kept", replace=True)
        with running(settings_for(url, yard_home)) as live:
            assert live.context.installation == "yard_old"


@contextmanager
def _another(url: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    if url.startswith("sqlite"):
        yield f"sqlite:///{tmp_path / 'another.db'}"
        return
    with request.getfixturevalue("postgres_server").database() as another:
        yield another


def test_what_is_there_is_moved_aside_never_removed(serve: Callable[..., Any], tmp_path: Path) -> None:
    with serve() as live, plane(live) as made:
        made.job()
        settings = settings_of(live)
        create(settings, tmp_path / "kept")
    if settings.database_url.startswith("postgresql"):
        with pytest.raises(BackupError, match="is not empty: make another"):
            restore(settings, tmp_path / "kept", replace=True)
        return
    with pytest.raises(BackupError, match="--replace"):
        restore(settings, tmp_path / "kept")
    database = Path(str(make_url(settings.database_url).database))
    Path(f"{database}-wal").write_text("of the database that was there")
    restored = restore(settings, tmp_path / "kept", replace=True)
    assert restored.aside is not None
    assert (restored.aside / "artifacts").is_dir()
    assert (restored.aside / database.name).is_file(), "it does not lie among the data"
    assert (restored.aside / f"{database.name}-wal").is_file()
    assert facts(settings.database_url)["jobs"] == 1
    with pytest.raises(BackupError, match="there is a database"):
        restore(settings, tmp_path / "kept")
    (tmp_path / "kept" / "torchyard.db").write_text("torn")
    with pytest.raises(BackupError, match=r"what was here lies in .*\.replaced-"):
        restore(settings, tmp_path / "kept", replace=True)


@pytest.mark.parametrize("name", ["notes.txt", "artifacts.old"])
def test_a_folder_of_other_things_is_left_alone(serve: Callable[..., Any], tmp_path: Path, name: str) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / name).write_text("mine")
    with serve() as live, pytest.raises(BackupError, match="holds other things"):
        create(settings_of(live), tmp_path / "kept")


def test_a_backup_of_another_installation_is_not_overwritten(serve: Callable[..., Any], tmp_path: Path) -> None:
    with serve() as live:
        create(settings_of(live), tmp_path / "kept")
        manifest.write(tmp_path / "kept", replace(manifest.read(tmp_path / "kept"), installation="yard_other"))
        with pytest.raises(BackupError, match="another installation"):
            create(settings_of(live), tmp_path / "kept")


def test_without_the_programs_of_postgresql_the_mend_is_said(
    serve: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve() as live:
        monkeypatch.setenv("PATH", str(tmp_path))
        if live.context.db.is_sqlite:
            assert create(settings_of(live), tmp_path / "kept").database == "sqlite"
            return
        with pytest.raises(BackupError, match="pg_dump is not here: install"):
            create(settings_of(live), tmp_path / "kept")


def test_passwords_stay_out_of_the_manifest(
    serve: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCHYARD_REDIS_URL", "redis://:hunter2@box:6379/0")
    monkeypatch.setenv("TORCHYARD_TOKEN", "hunter2")
    with serve() as live:
        create(settings_of(live), tmp_path / "kept")
    words = (tmp_path / "kept" / manifest.NAME).read_text()
    assert "hunter2" not in words
    assert "redis://@box:6379/0" in words
