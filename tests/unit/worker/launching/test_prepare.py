from pathlib import Path
from typing import Any

import pytest

from torchyard.spec import JobSpec
from worker.exceptions import CodeError
from worker.launching import prepare


def spec(**fields: Any) -> JobSpec:
    return JobSpec.model_validate({"command": ["train.py"]} | fields)


@pytest.mark.parametrize("name", ["", "/etc/passwd", "../x", "a/../../x", "a/..", ".", "a\0b"])
def test_a_path_that_leaves_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="no path inside"):
        prepare.safe_path(tmp_path, name)


def test_a_path_stays_inside(tmp_path: Path) -> None:
    assert prepare.safe_path(tmp_path, "a/./b") == tmp_path / "a" / "b"


def test_links_are_joined(tmp_path: Path) -> None:
    (tmp_path / "original" / "sets" / "a").mkdir(parents=True)
    (tmp_path / "code").mkdir()
    prepare.join_links(tmp_path / "code", spec(link=["sets/a"], link_root=str(tmp_path / "original")))
    assert (tmp_path / "code" / "sets" / "a").readlink() == tmp_path / "original" / "sets" / "a"


def test_a_link_that_cannot_be_is_named(tmp_path: Path) -> None:
    root = str(tmp_path / "original")
    (tmp_path / "code" / "data").mkdir(parents=True)
    (tmp_path / "original" / "data").mkdir(parents=True)
    for link, where, words in [
        ("gone", root, "original/gone does not exist"),
        ("data", root, "data is in the snapshot already"),
        ("data", None, "needs link_root"),
    ]:
        with pytest.raises(CodeError, match=words):
            prepare.join_links(tmp_path / "code", spec(link=[link], link_root=where))


def test_nothing_is_joined_below_a_link(tmp_path: Path) -> None:
    for name in ("original/sets", "code", "elsewhere"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "original" / "sets" / "a").touch()
    (tmp_path / "code" / "sets").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CodeError, match="sets/a lies in a folder that is linked itself"):
        prepare.join_links(tmp_path / "code", spec(link=["sets/a"], link_root=str(tmp_path / "original")))
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_live_folder_must_be_one(tmp_path: Path) -> None:
    with pytest.raises(CodeError, match="is no folder on this node"):
        prepare.check_live(tmp_path / "gone", spec())
    with pytest.raises(CodeError, match=r"train\.py does not exist in"):
        prepare.check_live(tmp_path, spec(live=str(tmp_path)))


def test_what_need_not_be_in_the_code(tmp_path: Path) -> None:
    for fields in [
        {"command": ["-m", "pkg"]},
        {"command": ["/opt/train.py"]},
        {"command": ["python", "-c", "1"]},
        {"launcher": "none", "command": ["echo", "x"]},
        {"command": None, "recipe": {}},
    ]:
        prepare.check_program(tmp_path, spec(**fields))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, r"train\.py is not in the job's code.*link:"),
        ({"command": ["python", "-u", "a/b.py"]}, r"a/b\.py is not in"),
        ({"launcher": "none", "command": ["./run.sh"]}, r"run\.sh is not in"),
        ({"command": ["torchrun", "train.py"]}, "leave out `torchrun`"),
    ],
)
def test_a_missing_program_comes_with_the_advice(tmp_path: Path, fields: dict[str, Any], words: str) -> None:
    with pytest.raises(CodeError, match=words):
        prepare.check_program(tmp_path, spec(**fields))
