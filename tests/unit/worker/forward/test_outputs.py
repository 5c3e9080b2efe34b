import os
from pathlib import Path

import pytest

from tests.support.disks import dead
from tests.support.written import Job, sha256
from torchyard import wire
from torchyard.wire import Root
from worker.exceptions import RequestRefusedError, UnavailableError
from worker.forward import reports


@pytest.fixture
def job(tmp_path: Path) -> Job:
    made = Job(tmp_path)
    made.lay_out({"train.py": b"code", "config.yaml": b"lr: 1", "gone.txt": b"x"})
    return made


def test_a_job_that_writes_nothing_costs_no_request(tmp_path: Path) -> None:
    job = Job(tmp_path)
    job.lay_out({"train.py": b"code"})
    job.end()
    assert job.store.reports == []


def test_what_is_new_changed_or_removed_is_told(job: Job) -> None:
    job.write("code/snapshot.pt", b"weights")
    job.write("code/runs/a/events", b"weights")
    job.write("code/config.yaml", b"lr: 2")
    job.write("data/x", b"data")
    job.write("output/run.sh", b"out").chmod(0o700)
    (job.folder / "job/code/gone.txt").unlink()
    os.utime(job.folder / "job/code/train.py")
    job.end()
    assert job.store.named() == {
        ("code", "snapshot.pt"): "stored",
        ("code", "runs/a/events"): "stored",
        ("code", "config.yaml"): "stored",
        ("code", "gone.txt"): "deleted",
        ("job", "data/x"): "stored",
        ("output", "run.sh"): "stored",
    }
    assert sorted(job.store.blobs.values()) == [b"data", b"lr: 2", b"out", b"weights"]
    assert [file.mode for report in job.store.reports for file in report.files] == [0o755, 0o755]


def test_a_mount_that_its_program_has_left_holds_nothing_up_and_removes_nothing(tmp_path: Path) -> None:
    job = Job(tmp_path)
    job.lay_out({"train.py": b"code", "data/list.txt": b"code"})
    job.write("code/snapshot.pt", b"weights")
    with dead(job.folder / "job/code/data"):
        ended = job.end()
    assert job.store.named() == {("code", "snapshot.pt"): "stored"}
    assert [note for note in ended.notes if "they are mounts" in note]


def test_a_link_is_stored_as_where_it_leads(job: Job) -> None:
    job.write("code/a/step-5.pt", b"weights")
    (job.folder / "job/code/a/latest").symlink_to((job.folder / "job/code/a/step-5.pt").resolve())
    job.end()
    link = next(file for report in job.store.reports for file in report.written if file.path == "a/latest")
    assert (link.is_link, link.size, job.store.blobs[link.sha256]) == (True, 9, b"step-5.pt")


def test_a_job_that_never_ran_removed_nothing(job: Job) -> None:
    (job.folder / "started").unlink()
    (job.folder / "job/code/gone.txt").unlink()
    job.write("code/half", b"a file of the attempt before")
    job.end()
    assert job.store.reports == []


def test_an_attempt_of_an_older_worker_has_its_output_folder(tmp_path: Path) -> None:
    job = Job(tmp_path)
    (job.folder / "started").touch()
    job.write("output/a", b"a")
    job.write("code/train.py", b"code")
    job.end()
    assert job.store.named() == {("output", "a"): "stored"}


def test_links_and_pipes_are_left_out(job: Job, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("key")
    (job.folder / "job/output/folder").symlink_to(tmp_path)
    (job.folder / "job/code/file").symlink_to(tmp_path / "secret")
    os.mkfifo(job.folder / "job/output/pipe")
    job.end()
    assert job.store.reports == []


def test_a_live_job_says_where_its_files_are(tmp_path: Path) -> None:
    job = Job(tmp_path)
    job.lay_out({}, live=True)
    job.write("output/a", b"a")
    assert job.end().notes == ["live: files stay where the job wrote them; the queue keeps TORCHYARD_OUTPUT_DIR alone"]
    assert job.store.named() == {("output", "a"): "stored"}


def test_what_is_beyond_the_limit_stays_on_the_node_the_oldest_first(job: Job) -> None:
    for age, name in enumerate(("code/z", "code/a", "data/m")):
        path = job.write(name, name.encode() * 100)
        os.utime(path, (1000 - age, 1000 - age))
    os.utime(job.write("output/oldest", b"o" * 100), (1, 1))
    notes = job.end(total=800).notes
    assert job.store.named() == {
        ("output", "oldest"): "stored",
        ("code", "z"): "stored",
        ("code", "a"): "on-node",
        ("job", "data/m"): "on-node",
    }
    assert notes[0].startswith("2 files (1.2 KiB) are too much for the store, and kept on this node in")
    kept = job.home / "kept" / "att-1"
    assert job.store.reports[-1].kept == str(kept)
    assert (kept / "code/a").read_bytes() == b"code/a" * 100
    assert (kept / "job/data/m").exists()
    assert not (job.folder / "job/code/a").exists()
    assert job.kept.attempts() == ["att-1"]


def test_a_worker_that_is_killed_while_it_keeps_files_goes_on(job: Job) -> None:
    job.write("code/a", b"a" * 100)
    job.write("code/b", b"b" * 100)
    job.kept.keep("att-1", job.folder, os.getuid(), [wire.Place(root=Root.CODE, path="a")])
    job.end(total=10)
    assert job.store.named() == {("code", "b"): "on-node"}
    assert sorted(path.name for path in (job.home / "kept/att-1/code").iterdir()) == ["a", "b"]


def test_many_files_go_in_several_reports(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reports, "AT_ONCE", 2)
    for name in "abcde":
        job.write(f"code/{name}", name.encode())
    job.end(files=4)
    assert {len(report.written) for report in job.store.reports} == {1, 2}
    assert sorted(job.store.named().values()) == ["on-node", *["stored"] * 4]


def test_a_file_that_the_store_refuses_stays_on_the_node(job: Job) -> None:
    job.store.refuse = 413
    job.write("output/big", b"big")
    job.end()
    assert job.store.named() == {("output", "big"): "on-node"}


def test_a_file_that_cannot_be_listed_keeps_no_other_from_it(job: Job) -> None:
    job.store.refuse_path = "bad name"
    for name in ("a", "bad name", "c"):
        job.write(f"code/{name}", name.encode())
    notes = job.end().notes
    assert job.store.named() == {("code", "a"): "stored", ("code", "c"): "stored"}
    assert notes[0].startswith("'bad name' cannot be listed and stays on the node")
    assert (job.home / "kept/att-1/code/bad name").exists()


def test_what_would_fill_the_stores_disk_stays_on_the_node(job: Job) -> None:
    job.store.room = 5
    job.write("code/small", b"123")
    job.write("code/large", b"1234567")
    job.end()
    assert job.store.named() == {("code", "small"): "stored", ("code", "large"): "on-node"}


def use_inbox(job: Job, tmp_path: Path) -> Path:
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    (inbox / wire.INBOX_PROBE).write_text("same")
    job.store.inbox = inbox
    assert job.sender.use_inbox(str(inbox), "same")
    return inbox


def test_on_one_file_system_nothing_is_copied_so_a_full_disk_is_no_reason_to_keep_it(job: Job, tmp_path: Path) -> None:
    inbox = use_inbox(job, tmp_path)
    job.store.room = 0
    job.write("code/large", b"1234567")
    job.end()
    assert job.store.named() == {("code", "large"): "stored"}
    assert job.store.linked == [True]
    assert [path.name for path in inbox.iterdir()] == [wire.INBOX_PROBE]


def test_a_file_with_two_names_is_copied(job: Job, tmp_path: Path) -> None:
    use_inbox(job, tmp_path)
    os.link(job.write("code/a", b"a"), tmp_path / "second name")
    job.end()
    assert job.store.linked == [False]


def test_a_store_that_loses_files_is_tried_again_later(job: Job) -> None:
    job.store.forgetful = True
    job.write("output/a", b"a")
    forwarder = job.forwarder()
    with pytest.raises(UnavailableError):
        forwarder.pump()
    job.store.forgetful = False
    assert not forwarder.pump()


def test_a_token_that_is_refused_for_a_while_costs_no_file(job: Job) -> None:
    forwarder = job.forwarder()
    job.write("output/a", b"1")
    job.store.refuse = 401
    with pytest.raises(RequestRefusedError):
        forwarder.pump()
    job.store.refuse = 0
    while forwarder.pump():
        pass
    assert list(job.store.blobs.values()) == [b"1"]
    assert forwarder.notes == []


def test_an_attempt_that_finds_files_tells_all_that_there_is_and_what_is_gone(tmp_path: Path) -> None:
    job = Job(tmp_path)
    job.lay_out({"a.py": b"a"}, {(Root.CODE, "old.pt"): b"1", (Root.CODE, "kept.pt"): b"2"})
    (job.folder / "job/code/old.pt").unlink()
    job.write("code/train.log", b"starting")
    job.end()
    assert job.store.named() == {
        ("code", "kept.pt"): "stored",
        ("code", "old.pt"): "deleted",
        ("code", "train.log"): "stored",
    }
    assert not any(report.saved for report in job.store.reports)


@pytest.mark.parametrize("path", ["code/kept.pt", "code/epoch-7.pt"])
def test_an_attempt_that_saves_something_says_so(tmp_path: Path, path: str) -> None:
    job = Job(tmp_path)
    job.lay_out({}, {(Root.CODE, "kept.pt"): b"2"})
    job.write(path, b"more")
    job.end()
    assert job.store.reports[0].saved


def test_reports_are_halved_down_to_one_file() -> None:
    refs = [wire.FileRef(path=name, size=1, sha256=sha256(name.encode())) for name in "abc"]
    gone = [wire.Place(root=Root.CODE, path="d")]
    pending, found = [wire.OutputReport(files=refs, deleted=gone, saved=True)], []
    while pending:
        report = pending.pop()
        pending += reports.halved(report)
        if not reports.halved(report):
            assert report.saved
            found += reports.keys(report)
    assert sorted(found) == [(Root.CODE, "d"), *((Root.OUTPUT, name) for name in "abc")]
