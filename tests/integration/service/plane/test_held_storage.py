"""What jobs hold in the store is known for each user and project after whatever happens to their files."""

import random
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest
from sqlalchemy import Connection, delete, insert, update
from sqlalchemy.exc import IntegrityError

from service.artifacts import housekeeping
from service.db import stored_bytes
from service.db.models import Checkpoint, Job, Project, StoredBytes, User
from service.db.unit_of_work import unit_of
from service.storage import retention
from tests.support.locks import is_waiting
from tests.support.plane import Plane, Seeded, sha256
from tests.support.storage import check_sums
from tests.support.wait import until
from torchyard import wire
from torchyard.ids import JobId


def spread(plane: Plane, count: int) -> list[Seeded]:
    """Jobs of two users in two projects."""
    jobs = [plane.job(checkpoint={"keep_last": 2}) for _ in range(count)]
    with plane.ctx.db.write() as tx:
        tx.execute(insert(User).values(id="user-b", name="b", created_us=1))
        tx.execute(insert(Project).values(name="other", created_us=1))
        for place, seeded in enumerate(jobs):
            if place % 2:
                tx.execute(update(Job).where(Job.id == seeded.job).values(user_id="user-b"))
            if place % 3:
                tx.execute(update(Job).where(Job.id == seeded.job).values(project="other"))
    return jobs


class Events:
    """What may happen to the files of a job, at random."""

    def __init__(self, plane: Plane, seed: int) -> None:
        self.plane, self.chance = plane, random.Random(seed)
        self._logs: dict[str, int] = {}
        self._steps = iter(range(1, 1000))

    def log(self, seeded: Seeded) -> None:
        """More of the log, or a part of it again."""
        size, offset = self.chance.randrange(50), self._logs.get(seeded.attempt, 0)
        again = self.chance.randrange(offset + 1) if self.chance.random() < 0.3 else 0
        assert self.plane.log(seeded, offset - again, b"x" * (again + size)).status_code == 200
        self._logs[seeded.attempt] = offset + size

    def checkpoint(self, seeded: Seeded) -> None:
        """One that is stored, in place of older ones, or only reported."""
        files = {"model.pt": self.chance.randbytes(self.chance.randrange(1, 90))}
        if self.chance.random() < 0.3:
            self.plane.report(seeded, next(self._steps), files, hashed=False)
        else:
            self.plane.checkpoint(seeded, next(self._steps), files)

    def outputs(self, seeded: Seeded) -> None:
        """Files that are new, changed, deleted, or stay on their node."""
        written, deleted = [], []
        for path in self.chance.sample("abcdef", 3):
            if self.chance.random() < 0.2:
                deleted.append(wire.Place(root=wire.Root.OUTPUT, path=path))
                continue
            data, on_node = self.chance.randbytes(self.chance.randrange(1, 90)), self.chance.random() < 0.3
            file = wire.WrittenFile(
                path=path, size=len(data), sha256=sha256(data), root=wire.Root.OUTPUT, on_node=on_node
            )
            written.append(file)
        answer = self.plane.post(seeded, "outputs", wire.OutputReport(files=[], written=written, deleted=deleted))
        assert answer.status_code == 200, answer.text

    def delete(self, seeded: Seeded) -> None:
        """Somebody deletes a checkpoint."""
        known = self.plane.get(f"/jobs/{seeded.job}/checkpoints").json()
        if known:
            self.plane.live.client.delete(f"/api/v1/checkpoints/{self.chance.choice(known)['id']}")

    def discard(self, seeded: Seeded) -> None:
        """All files go; the node comes back later with some more."""
        self.plane.set_state(seeded, "succeeded", settled=True)
        answer = self.plane.live.client.post(f"/api/v1/jobs/{seeded.job}/discard")
        assert answer.status_code == 200, answer.text
        self.plane.set_state(seeded, "running")
        self._logs.pop(seeded.attempt, None)

    def any(self) -> Callable[[Seeded], None]:
        """One of them."""
        often = [self.log, self.checkpoint, self.outputs]
        return self.chance.choice([*often * 3, self.delete, self.discard])


@pytest.mark.parametrize("seed", [1, 2])
def test_sums_are_true_after_whatever_happens(data_plane: Plane, seed: int) -> None:
    jobs, events = spread(data_plane, 4), Events(data_plane, seed)
    held = []
    for _ in range(40):
        events.any()(events.chance.choice(jobs))
        held.append(check_sums(data_plane.ctx.db))
    assert any(after < before for before, after in pairwise(held))
    assert max(held) > 0


def test_reports_that_overlap_count_once(data_plane: Plane) -> None:
    seeded = data_plane.job()

    def report(size: int) -> int:
        file = wire.FileRef(path="result.csv", size=size, sha256=sha256(b"x" * size))
        return data_plane.post(seeded, "outputs", wire.OutputReport(files=[file])).status_code

    with ThreadPoolExecutor(6) as threads:
        assert set(threads.map(report, range(1, 13))) == {200}
    assert 1 <= check_sums(data_plane.ctx.db) <= 12


def test_a_transaction_that_fails_changes_no_sum(data_plane: Plane) -> None:
    seeded = data_plane.job()
    data_plane.checkpoint(seeded, 1, {"model.pt": b"x" * 7})

    def fail() -> None:
        with data_plane.ctx.db.write() as tx:
            tx.execute(update(Checkpoint).values(size=50))
            unit_of(tx).count_stored(JobId(seeded.job), 43)
            tx.execute(insert(StoredBytes).values(user_id="nobody", project="default", size=1))

    with pytest.raises(IntegrityError):
        fail()
    assert check_sums(data_plane.ctx.db) == 7


def test_one_that_is_stored_while_it_is_deleted_is_not_counted(data_plane: Plane) -> None:
    seeded, db = data_plane.job(), data_plane.ctx.db
    checkpoint = data_plane.report(seeded, 1, {"model.pt": b"x" * 7}, hashed=False).checkpoint

    def mark() -> None:
        with db.write() as tx:
            retention.mark_deleted(tx, [checkpoint], 1)

    with ThreadPoolExecutor(1) as threads:
        with db.write() as tx:
            tx.execute(update(Checkpoint).where(Checkpoint.id == checkpoint).values(state="stored"))
            unit_of(tx).count_stored(JobId(seeded.job), 7)
            deleting = threads.submit(mark)
            until(lambda: is_waiting(db, deleting), what="the other transaction")
        deleting.result()
    assert check_sums(db) == 0


def test_sums_that_are_wrong_are_corrected_whatever_is_written_meanwhile(
    data_plane: Plane, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    jobs, db = spread(data_plane, 3), data_plane.ctx.db
    for seeded in jobs:
        assert data_plane.log(seeded, 0, b"x" * 10).status_code == 200
    assert housekeeping.correct_sums(db) == 0
    with db.write() as tx:
        tx.execute(delete(StoredBytes).where(StoredBytes.user_id == "user-b"))
        tx.execute(update(StoredBytes).where(StoredBytes.project == "default").values(size=StoredBytes.size - 4))

    def found_first(tx: Connection) -> Counter[stored_bytes.Owner]:
        wrong = differences(tx)
        for seeded in jobs:
            assert data_plane.log(seeded, 10, b"y" * 5).status_code == 200
        return wrong

    differences = stored_bytes.differences
    monkeypatch.setattr(stored_bytes, "differences", found_first)
    assert housekeeping.correct_sums(db) == 2
    assert check_sums(db) == 45
    assert "were wrong, and are corrected" in caplog.text
