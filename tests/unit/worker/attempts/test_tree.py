import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.disks import dead, small
from tests.support.written import Job, sha256
from torchyard.spec import JobSpec
from torchyard.wire import Root
from worker.attempts import tree


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path)


def walk(job: Job, **manifest: Any) -> set[tuple[str, str]]:
    found = tree.Walk(job.folder, os.getuid(), tree.BaselineManifest(**manifest)).files()
    return {(str(each.root), each.path) for each in found}


def test_all_that_a_program_writes_is_found_but_ours(job: Job) -> None:
    for path in ("code/snapshot.pt", "code/runs/a/events", "output/x", "data/mnist/raw", "notes.txt"):
        job.write(path, b"x")
    for path in ("metrics/1.jsonl", "marks/polled-0", "checkpoints/step-1/state.pt", "outcome.json", "recipe.json"):
        job.write(path, b"ours")
    job.write("outcome.json.77.tmp", b"ours")
    assert walk(job) == {
        ("code", "snapshot.pt"),
        ("code", "runs/a/events"),
        ("output", "x"),
        ("job", "data/mnist/raw"),
        ("job", "notes.txt"),
    }


def test_caches_and_environments_are_not(job: Job) -> None:
    for path in ("__pycache__/a.py", "a.pyc", ".git/HEAD", "x/.ipynb_checkpoints/n", ".mypy_cache/y", "kept"):
        job.write(f"code/{path}", b"x")
    job.write("code/venv/pyvenv.cfg", b"")
    job.write("code/venv/lib/big.so", b"")
    job.write("output/__pycache__/asked-for", b"x")
    assert walk(job) == {("code", "kept"), ("output", "__pycache__/asked-for")}


def test_links_pipes_and_other_users_files_are_not(job: Job, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"secret")
    (job.folder / "job" / "code" / "file").symlink_to(tmp_path / "secret")
    (job.folder / "job" / "code" / "folder").symlink_to(tmp_path)
    os.mkfifo(job.folder / "job" / "code" / "pipe")
    assert walk(job) == set()
    job.write("code/mine", b"x")
    looked = tree.Walk(job.folder, os.getuid() + 1, tree.BaselineManifest())
    assert list(looked.files()) == []
    assert looked.passed_over == 2  # the file and the pipe


def test_what_is_mounted_is_not_and_nobody_knows_what_it_covers(job: Job) -> None:
    job.write("code/mine", b"x")
    job.write("code/remote/list", b"x")
    job.write("code/scratch/list", b"x")
    looked = tree.Walk(job.folder, os.getuid(), tree.BaselineManifest())
    with dead(job.folder / "job/code/remote"), small(job.folder / "job/code/scratch", 1, new=False) as scratch:
        (scratch / "large").write_bytes(b"x")
        assert [each.path for each in looked.files()] == ["mine"]
    assert looked.passed_over == 2
    assert looked.covers((Root.CODE, "remote/list"))
    assert looked.covers((Root.CODE, "scratch/list"))
    assert not looked.covers((Root.OUTPUT, "remote/list"))
    assert not looked.covers((Root.CODE, "remote.txt"))


def test_names_that_no_system_could_hold_are_counted(job: Job) -> None:
    with (job.folder / "job" / "code" / os.fsdecode(b"\xff")).open("w"):
        pass
    looked = tree.Walk(job.folder, os.getuid(), tree.BaselineManifest())
    assert list(looked.files()) == []
    assert looked.passed_over == 1


@pytest.mark.parametrize(
    ("patterns", "wanted"),
    [
        (None, {"code a.pt", "code runs/x", "code runs/y.tmp", "job data/z"}),
        ([], set()),
        (["*.pt"], {"code a.pt"}),
        (["!*.tmp"], {"code a.pt", "code runs/x", "job data/z"}),
        (["runs/", "!*.tmp"], {"code runs/x"}),
        (["../data"], {"job data/z"}),
        (["!../data"], {"code a.pt", "code runs/x", "code runs/y.tmp"}),
        (["/a.pt", "__pycache__/"], {"code a.pt", "code __pycache__/c"}),
        (["*"], {"code a.pt", "code runs/x", "code runs/y.tmp", "job data/z", "code __pycache__/c"}),
    ],
)
def test_patterns_narrow_and_widen(job: Job, patterns: list[str] | None, wanted: set[str]) -> None:
    for path in ("code/a.pt", "code/runs/x", "code/runs/y.tmp", "data/z", "code/__pycache__/c", "output/always"):
        job.write(path, b"x")
    spec = JobSpec.model_validate({"command": ["x"], "outputs": patterns})
    found = {f"{root} {path}" for root, path in walk(job, patterns=spec.outputs)}
    assert found == wanted | {"output always"}


def test_a_live_folder_has_its_output_folder_only(job: Job) -> None:
    job.write("output/x", b"x")
    job.write("notes.txt", b"x")
    assert walk(job, live=True) == {("output", "x")}


def test_a_manifest_is_read_as_it_was_written(job: Job) -> None:
    job.lay_out({"train.py": b"code"}, {(Root.JOB, "data/x"): b"data"}, patterns=("*.pt",))
    manifest = tree.read(job.folder)
    assert manifest is not None
    assert manifest.patterns == ("*.pt",)
    assert manifest.snapshot == {(Root.CODE, "train.py"): sha256(b"code")}
    assert manifest.carried == {(Root.JOB, "data/x"): sha256(b"data")}
    assert manifest.stamps.keys() == manifest.snapshot.keys() | manifest.carried.keys()
    (job.folder / tree.MANIFEST).write_bytes(b'{"patterns": nu')
    assert tree.read(job.folder) is None


def test_a_stamp_tells_a_file_that_was_written_or_replaced(job: Job) -> None:
    job.lay_out({"same": b"x", "written": b"x", "replaced": b"x", "touched": b"x"})
    manifest = tree.read(job.folder)
    assert manifest is not None
    job.write("code/written", b"y")
    job.write("code/new", b"x").replace(job.folder / "job/code/replaced")
    os.utime(job.folder / "job/code/touched")
    found = {each.path: each for each in tree.Walk(job.folder, os.getuid(), manifest).files()}
    assert {path for path, each in found.items() if manifest.is_untouched(each)} == {"same"}


def test_links_to_what_is_kept_beside_them_are(job: Job, tmp_path: Path) -> None:
    code = job.folder / "job" / "code"
    for path in ("code/step_5.pt", "code/run/a/x", "data/y"):
        job.write(path, b"x")
    for name, target in (
        ("latest", "step_5.pt"),
        ("run/up", "../step_5.pt"),
        ("whole", str(code.resolve() / "run" / "a")),  # as os.path.abspath has it
        ("out", "../data/y"),
        ("gone", "step_4.pt"),
        ("here", "."),
    ):
        (code / name).symlink_to(target)
    found = tree.Walk(job.folder, os.getuid(), tree.BaselineManifest()).files()
    links = {each.path: (each.link, each.size) for each in found if each.link is not None}
    assert links == {"latest": ("step_5.pt", 9), "run/up": ("../step_5.pt", 12), "whole": ("run/a", 5)}
