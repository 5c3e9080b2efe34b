"""What jobs tell of their modules is checked, counted, kept and forgotten."""

import os
from pathlib import Path

import pytest

from torchyard.injob import layout
from worker.attempts.folder import AttemptFolder
from worker.launching import learnt
from worker.launching.learnt import ImportReport, Learnt, LearntModules, parse, read_report, with_report, with_struck

#: Digests of two environments.
KEY, OTHER = "aa", "bb"


@pytest.mark.parametrize(
    "line",
    ["", "os;import x", "../x", "a..b", ".a", "a.", "a b", "1a", "ä", "a-b", "a\0", "x" * 121, "own ", '"a"', "a\r"],
)
def test_what_is_no_name_is_left_out(line: str) -> None:
    assert parse(f"good\n{line}\nbetter.name\n").installed == ("good", "better.name")


def test_a_line_that_is_cut_is_left_out() -> None:
    assert parse("good\nhal").installed == ("good",)


def test_names_are_told_once_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learnt, "MAX_NAMES", 3)
    told = parse("a\na\nb\nc\nd\n" + "".join(f"own o{number}\n" for number in range(9)))
    assert told.installed == ("a", "b", "c")
    assert len(told.own) == 3
    known = with_report(Learnt(names=("z",)), told)
    assert known.names == ("z", "a", "b")


def test_what_lies_in_a_package_that_is_struck_off_is_not_wanted() -> None:
    known = Learnt(names=("a", "a.b", "a.b.c", "ab"), struck={"a.b": "it starts threads"})
    assert known.wanted() == ["a", "ab"]


def test_a_package_of_the_name_of_a_jobs_own_module_is_struck_off() -> None:
    known = with_report(
        Learnt(), ImportReport(installed=("datasets.load", "tidy"), own=frozenset({"datasets", "train"}))
    )
    assert known.struck == {"datasets": learnt.SHADOWED}
    assert known.wanted() == ["tidy"]


@pytest.mark.parametrize("reasons", [None, [], "words", {"b": "unknown"}, {"a": ["x"] * 999}])
def test_a_server_strikes_off_nothing_but_what_it_was_to_load(reasons: object) -> None:
    known = with_struck(Learnt(names=("a",)), reasons)
    assert set(known.struck) <= {"a"}
    assert all(len(why) <= learnt.WORDS for why in known.struck.values())


def test_a_reason_is_one_line() -> None:
    assert with_struck(Learnt(names=("a",)), {"a": "one\ntwo"}).struck == {"a": "one two"}


def test_environments_and_accounts_are_apart_and_outlive_the_worker(tmp_path: Path) -> None:
    first = LearntModules(path=tmp_path / "learnt.json")
    first.take(KEY, ImportReport(installed=("a", "b")))
    first.strike(KEY, {"b": "it starts threads"})
    again = LearntModules(path=tmp_path / "learnt.json")
    assert (again.wanted(KEY), again.struck(KEY), again.wanted(OTHER)) == (["a"], {"b": "it starts threads"}, [])
    again.forgive(KEY)
    assert LearntModules(path=tmp_path / "learnt.json").wanted(KEY) == ["a", "b"]
    assert (tmp_path / "learnt.json").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("content", ["", "[]", '{"x": 1}', '{"x": {"names": 1, "struck": {}}}'])
def test_a_torn_file_is_begun_anew(tmp_path: Path, content: str) -> None:
    (tmp_path / "learnt.json").write_text(content)
    known = LearntModules(path=tmp_path / "learnt.json")
    known.take(KEY, ImportReport(installed=("a",)))
    assert LearntModules(path=tmp_path / "learnt.json").wanted(KEY) == ["a"]


def test_the_environments_that_taught_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learnt, "MAX_KEYS", 1)
    known = LearntModules()
    known.take(KEY, ImportReport(installed=("a",)))
    known.take(OTHER, ImportReport(installed=("b",)))
    assert (known.wanted(KEY), known.wanted(OTHER)) == ([], ["b"])


def test_only_a_file_of_the_jobs_own_is_read(tmp_path: Path) -> None:
    folder = AttemptFolder(tmp_path, "att-1")
    folder.at(layout.MARKS).mkdir(parents=True)
    mark = folder.at(layout.MARKS) / layout.imported_mark(0)
    assert read_report(folder, os.getuid()) == ImportReport()
    (tmp_path / "secret").write_text("secret\n")
    mark.symlink_to(tmp_path / "secret")
    assert read_report(folder, os.getuid()) == ImportReport()
    mark.unlink()
    mark.write_text("a\n")
    assert read_report(folder, os.getuid() + 1) == ImportReport()
    assert read_report(folder, os.getuid()).installed == ("a",)
    mark.write_text("a\n" * learnt.MAX_REPORT)
    assert read_report(folder, os.getuid()).installed == ("a",)
