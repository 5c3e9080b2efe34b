import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.written import Job
from torchyard import wire
from torchyard.wire import Place, Root
from worker.forward.bringer import Bringer

HUGE = Place(root=Root.CODE, path="models/huge.pt")
OTHER = Place(root=Root.OUTPUT, path="other")


@pytest.fixture
def job(tmp_path: Path) -> Job:
    made = Job(tmp_path)
    made.write("code/models/huge.pt", b"huge")
    made.write("output/other", b"other")
    made.kept.keep("att-1", made.folder, os.getuid(), [HUGE, OTHER])
    return made


def bringer(job: Job) -> Bringer:
    return Bringer(job.kept, job.store, job.sender, lambda function: function())


def orders(**fields: Any) -> wire.Orders:
    return wire.Orders(assigned=[], orders=[], **fields)


def test_a_link_that_is_put_in_a_files_place_is_not_followed(tmp_path: Path) -> None:
    job = Job(tmp_path)
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "huge.pt").write_text("key")
    (job.folder / "job/code/models").symlink_to(tmp_path / "secret")
    job.kept.keep("att-1", job.folder, os.getuid(), [HUGE])
    assert not job.kept.has("att-1", HUGE)
    assert (tmp_path / "secret" / "huge.pt").exists()


def test_a_link_that_its_user_puts_among_the_kept_files_is_not_followed(job: Job, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    code = job.kept.folder("att-1") / "code"
    code.rename(tmp_path / "away")
    code.symlink_to(elsewhere)
    job.write("code/more", b"more")
    job.kept.keep("att-1", job.folder, os.getuid(), [Place(root=Root.CODE, path="more")])
    job.kept.remove("att-1", Place(root=Root.CODE, path="more"))
    assert list(elsewhere.iterdir()) == []


def test_what_lies_behind_a_link_is_not_told_to_be_kept(job: Job, tmp_path: Path) -> None:
    models = job.kept.folder("att-1") / "code" / "models"
    models.rename(tmp_path / "away")
    models.symlink_to(tmp_path / "away")
    assert not job.kept.has("att-1", HUGE)
    assert job.kept.has("att-1", OTHER)


def test_a_file_that_is_asked_for_goes_to_the_store_and_leaves(job: Job) -> None:
    bringer(job).obey(orders(bring=[wire.BringOrder(attempt="att-1", files=[HUGE])]))
    assert job.store.named() == {("code", "models/huge.pt"): "stored"}
    # It is reported, which names the hash, before and after it is there.
    assert list(job.store.blobs.values()) == [b"huge"]
    assert not job.kept.has("att-1", HUGE)
    assert not (job.home / "kept/att-1/code").exists()
    bringer(job).obey(orders(bring=[wire.BringOrder(attempt="att-1", files=[OTHER])]))
    assert job.store.named()["output", "other"] == "stored"
    assert job.kept.attempts() == []


def test_it_stays_while_the_store_has_no_room(job: Job) -> None:
    job.store.room = 1
    bringer(job).obey(orders(bring=[wire.BringOrder(attempt="att-1", files=[HUGE])]))
    assert job.store.blobs == {}
    assert job.kept.has("att-1", HUGE)


def test_a_discarded_job_leaves_nothing(job: Job) -> None:
    bringer(job).obey(orders(discard=["att-1", "att-unknown", "../attempts"]))
    assert job.kept.attempts() == []
    assert job.folder.exists()
