"""The marks of a start in an attempt's folder."""

import json
import os
from pathlib import Path

import pytest

from torchyard.injob import layout
from torchyard.wire import ColdCode, PreloadedModules, StartMark
from worker.attempts.folder import AttemptFolder
from worker.attempts.starts import ColdReason, Heard, StartClock, StartReader
from worker.shim.files import steady_us


@pytest.fixture
def folder(tmp_path: Path) -> AttemptFolder:
    made = AttemptFolder(tmp_path, "att-1")
    made.create()
    made.at(layout.MARKS).mkdir(parents=True)
    return made


def begin(folder: AttemptFolder, cold: ColdReason | None = None, preloaded: PreloadedModules | None = None) -> int:
    """The worker's marks and the shim's; returns when the node heard of the attempt."""
    heard = steady_us() - 1_000_000
    clock = StartClock(heard=Heard(wall_us=5, steady_us=heard, published_us=3))
    clock.marks = {"claimed": heard + 10}
    clock.mark(StartMark.PREPARED)
    clock.write(folder, cold, preloaded)
    shim = {"begun_us": heard + 100, "started_steady_us": heard + 200, "forked": False}
    folder.at(layout.SHIM).write_text(json.dumps(shim))
    return heard


def say(folder: AttemptFolder, text: str) -> None:
    with (folder.at(layout.MARKS) / layout.start_mark(0)).open("a") as file:
        file.write(text)


def test_marks_of_worker_shim_and_rank_become_one_start(folder: AttemptFolder) -> None:
    heard = begin(folder, ColdReason(code=ColdCode.UNFIT, message="it keeps a file open", said="a file"))
    reader = StartReader(folder, owner=os.getuid())
    first = reader.read()
    assert first is not None
    assert (first.heard_us, first.published_us, first.warm) == (5, 3, False)
    assert (first.cold_reason, first.cold_code, first.cold_said) == ("it keeps a file open", "unfit", "a file")
    assert first.marks[StartMark.CLAIMED] == 10
    assert first.marks[StartMark.PREPARED] >= 1_000_000
    assert (first.marks[StartMark.SHIM], first.marks[StartMark.STARTED]) == (100, 200)
    say(folder, f"torch {heard + 300}\ntorch {heard + 400}\n")
    second = reader.read()
    assert second is not None
    assert second.marks[StartMark.TORCH] == 300


def test_nothing_is_told_before_it_began_and_by_other_nodes(folder: AttemptFolder) -> None:
    assert StartReader(folder, owner=os.getuid()).read() is None
    begin(folder)
    assert StartReader(folder, owner=os.getuid(), first=False).read() is None


def test_what_was_loaded_ahead_is_told_unless_the_program_was_executed(folder: AttemptFolder) -> None:
    found = PreloadedModules(packages=["tidy"], modules=2, seconds=0.5)
    begin(folder, preloaded=found)
    reader = StartReader(folder, owner=os.getuid())
    start = reader.read()
    assert start is not None
    assert start.preloaded == found
    say(folder, "cold its program was executed: it is no Python\n")
    start = reader.read()
    assert start is not None
    assert start.preloaded is None


def test_why_a_forked_program_was_executed_is_its_servers_word(folder: AttemptFolder) -> None:
    begin(folder)
    say(folder, "cold its program was executed: it is no Python\ncold-code not-python\n")
    start = StartReader(folder, owner=os.getuid()).read()
    assert start is not None
    assert (start.cold_reason, start.cold_code) == ("its program was executed: it is no Python", "not-python")
    assert start.cold_said is None


@pytest.mark.parametrize(
    "text", ["torch 5\n", "torch 99999999999999999999999\n", "torch\n", "torch x\n", "\0\xff torch", "other 7\n"]
)
def test_what_a_job_makes_up_is_no_mark(folder: AttemptFolder, text: str) -> None:
    begin(folder)
    say(folder, text)
    start = StartReader(folder, owner=os.getuid()).read()
    assert start is not None
    assert StartMark.TORCH not in start.marks


def test_a_link_in_the_place_of_the_marks_is_not_followed(folder: AttemptFolder, tmp_path: Path) -> None:
    heard = begin(folder)
    (tmp_path / "elsewhere").write_text(f"torch {heard + 300}\n")
    (folder.at(layout.MARKS) / layout.start_mark(0)).symlink_to(tmp_path / "elsewhere")
    start = StartReader(folder, owner=os.getuid()).read()
    assert start is not None
    assert StartMark.TORCH not in start.marks
