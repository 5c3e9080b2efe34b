import os
import time
from pathlib import Path

import pytest

from tests.support.written import Job
from torchyard.wire import Root
from worker.forward.outputs import OutputForwarder


@pytest.fixture
def job(tmp_path: Path) -> Job:
    made = Job(tmp_path)
    made.lay_out({"train.py": b"code"}, {(Root.CODE, "snapshot.pt"): b"1"})
    return made


def age(path: Path, seconds: float) -> None:
    then = time.time() - seconds
    os.utime(path, (then, then))


def test_files_that_are_still_come_while_the_job_runs(job: Job) -> None:
    growing = job.forwarder().growing
    age(job.write("code/epoch-1.pt", b"1st"), 100)
    job.write("code/epoch-2.pt", b"being written")
    assert growing.bring() == 0  # seen for the first time
    assert growing.bring() == 1
    assert job.store.named() == {("code", "epoch-1.pt"): "stored"}
    assert list(job.store.blobs.values()) == [b"1st"]
    assert job.store.reports[-1].saved
    before = len(job.store.reports)
    assert growing.bring() == 0  # nothing new
    assert len(job.store.reports) <= before + 1

    age(job.write("code/epoch-1.pt", b"rewritten"), 90)
    assert growing.bring() == 0
    assert growing.bring() == 1
    assert b"rewritten" in job.store.blobs.values()


def test_what_the_store_has_no_room_for_waits_for_the_end(job: Job) -> None:
    growing = job.forwarder().growing
    job.store.room = 2
    age(job.write("code/a", b"large"), 100)
    growing.bring()
    assert growing.bring() == 0
    assert job.store.blobs == {}


def test_what_came_early_and_was_removed_is_told_at_the_end(job: Job) -> None:
    forwarder = job.forwarder()
    place = job.write("code/epoch-1.pt", b"1st")
    age(place, 100)
    forwarder.growing.bring()
    forwarder.growing.bring()
    place.unlink()
    while forwarder.pump():
        pass
    assert job.store.named() == {("code", "epoch-1.pt"): "deleted", ("code", "snapshot.pt"): "stored"}


def test_rounds_are_in_the_background_one_at_a_time(job: Job) -> None:
    forwarder = job.forwarder(every_s=0)
    assert not forwarder.growing.pump()
    assert not forwarder.growing.pump()
    assert len(job.spawned) == 1
    assert forwarder.pump()  # the end waits for it
    job.spawned.pop()()
    assert not forwarder.pump()


def test_a_round_that_fails_is_followed_by_another(job: Job) -> None:
    forwarder: OutputForwarder = job.forwarder(every_s=0)
    job.write("code/a", b"a")
    job.store.refuse = 503
    for _ in range(2):
        forwarder.growing.pump()
        if job.spawned:
            job.spawned.pop()()
    assert forwarder.growing.rest(0)
