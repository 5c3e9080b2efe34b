"""A database that somebody else keeps locked, and a disk that is full: said at once, by their names."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
from sqlalchemy import func, select

from service.db.models import Job
from service.db.reserve import SIZE
from tests.support import disks, scripted
from tests.support.databases import locked
from tests.support.live import Live, live_service, running, serve, settings_for, yard_home  # noqa: F401  fixtures
from tests.support.problems import kind
from tests.support.specs import spec
from torchyard import wire
from torchyard.client.client import Client


def submit(live: Live) -> httpx.Response:
    return live.client.post("/api/v1/jobs", json=spec())


def submit_much(live: Live) -> httpx.Response:
    return live.client.post("/api/v1/jobs", json=spec(tags=["x" * 60] * 20))


def test_nobody_waits_long_for_a_locked_database(live_service: Live) -> None:  # noqa: F811
    """All are answered while the lock is held, however many they are."""
    submit(live_service).raise_for_status()
    with locked(live_service.context.db), ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda _: submit(live_service), range(8)))
    for answer in answers:
        assert kind(answer) == (503, "unavailable")
        assert answer.headers["Retry-After"] == "2"
        assert "busy" in answer.json()["detail"]
    submit(live_service).raise_for_status()


def test_a_client_comes_again_and_says_so(live_service: Live) -> None:  # noqa: F811
    told: list[str] = []
    free = threading.Event()

    def hold() -> None:
        with locked(live_service.context.db):
            held.set()
            free.wait(60)

    held, holder = threading.Event(), threading.Thread(target=hold)
    holder.start()
    held.wait(60)
    with Client(live_service.url, live_service.admin_token) as client:
        client.connection.tell = lambda message: (told.append(message), free.set())[0]
        job = client.submit(spec())
    holder.join()
    assert len(told) == 1
    assert told[0].startswith("The database is busy")
    assert "trying again" in told[0]
    with live_service.context.db.read() as tx:
        assert tx.scalars(select(Job.id)).all() == [job.id]


def test_what_makes_room_gets_through_on_a_full_disk(migrated_file: Path, yard_home: Path, tmp_path: Path) -> None:  # noqa: F811
    with disks.small(tmp_path / "disk", 24) as disk:
        database, reserve = disk / "test.db", disk / "test.db-reserve"
        database.write_bytes(migrated_file.read_bytes())
        with running(settings_for(f"sqlite:///{database}", disk, disk_floor=0)) as live:
            jobs = [submit(live).raise_for_status().json()["id"] for _ in range(20)]
            disks.fill(disk / "full")
            assert any(submit_much(live).status_code == 507 for _ in range(60))
            for action in ("cancel", "discard"):
                for job in jobs:
                    live.client.post(f"/api/v1/jobs/{job}/{action}").raise_for_status()
            assert any(submit_much(live).status_code == 507 for _ in range(60))
            (disk / "full").unlink()
            last = submit(live).raise_for_status().json()["id"]
            live.client.post(f"/api/v1/jobs/{last}/cancel").raise_for_status()
            assert reserve.stat().st_blocks * 512 == SIZE
        assert not reserve.exists()


def test_a_running_job_is_cancelled_on_a_full_disk(migrated_file: Path, yard_home: Path, tmp_path: Path) -> None:  # noqa: F811
    """Its node hears of it, and its end is stored."""
    with disks.small(tmp_path / "disk", 24) as disk:
        database = disk / "test.db"
        database.write_bytes(migrated_file.read_bytes())
        settings = settings_for(f"sqlite:///{database}", disk, disk_floor=0)
        with running(settings) as live, scripted.agent(live) as agent:
            job = submit(live).raise_for_status().json()["id"]
            attempt = agent.start()
            disks.fill(disk / "full")
            assert any(submit_much(live).status_code == 507 for _ in range(60))
            live.client.post(f"/api/v1/jobs/{job}/cancel").raise_for_status()
            assert any(submit(live).status_code == 507 for _ in range(200))
            assert agent.ordered(wire.Action.STOP).attempt == attempt.id
            attempt.end(signal=15)
            assert live.client.get(f"/api/v1/jobs/{job}").json()["state"] == "cancelled"


def test_a_full_disk_has_a_problem_of_its_own(migrated_file: Path, yard_home: Path, tmp_path: Path) -> None:  # noqa: F811
    with disks.small(tmp_path / "disk", 16) as disk:
        database = disk / "test.db"
        database.write_bytes(migrated_file.read_bytes())
        with running(settings_for(f"sqlite:///{database}", disk, disk_floor=0)) as live:
            fresh = live.client.post("/api/v1/tokens", json={"name": "fresh", "scopes": ["read"]}).json()["secret"]
            disks.fill(disk / "full")
            answers = [submit_much(live) for _ in range(40)]
            assert kind(answers[-1]) == (507, "insufficient-storage")
            assert "disk is full" in answers[-1].json()["detail"]
            # That a token is used cannot be noted: whoever reads, or frees the disk, is let in all the same.
            live.client.get("/api/v1/jobs", headers={"Authorization": f"Bearer {fresh}"}).raise_for_status()
            (disk / "full").unlink()
            submit(live).raise_for_status()
            with live.context.db.read() as tx:
                stored = tx.scalar(select(func.count()).select_from(Job))
            assert stored == 1 + sum(answer.status_code == 201 for answer in answers)
