"""A framework's checkpoint goes to where the script looks for it, and into its arguments."""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from torchyard.ids import AttemptId
from torchyard.spec import JobSpec
from torchyard.wire import CarriedFile, Carry, Root
from worker.exceptions import RestoreError
from worker.launching import resuming


def spec(**fields: Any) -> JobSpec:
    return JobSpec.model_validate({"command": ["train.py"]} | fields)


@pytest.fixture
def restore(tmp_path: Path) -> Path:
    """A checkpoint that a framework wrote to ``out/checkpoint-20``."""
    folder = tmp_path / "restore"
    (folder / "out" / "checkpoint-20").mkdir(parents=True)
    (folder / "out" / "checkpoint-20" / "model.bin").write_text("weights")
    (folder / "adopted.json").write_text(json.dumps({"place": "out/checkpoint-20", "step": 20}))
    return folder


@pytest.fixture
def cwd(tmp_path: Path) -> Path:
    folder = tmp_path / "code"
    folder.mkdir()
    return folder


def test_it_lies_where_it_lay(restore: Path, cwd: Path) -> None:
    resuming.bring(restore, cwd, spec())
    assert (cwd / "out" / "checkpoint-20" / "model.bin").read_text() == "weights"


def test_what_is_there_stays(restore: Path, cwd: Path) -> None:
    (cwd / "out" / "checkpoint-20").mkdir(parents=True)
    resuming.bring(restore, cwd, spec())
    assert list((cwd / "out" / "checkpoint-20").iterdir()) == []


def test_it_is_not_put_behind_a_link(restore: Path, cwd: Path, tmp_path: Path) -> None:
    """Both the checkpoint and `link` are the user's words, and root may lay it out."""
    (tmp_path / "elsewhere").mkdir()
    (cwd / "out").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RestoreError, match="`link` leads elsewhere"):
        resuming.bring(restore, cwd, spec())
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_folder_of_the_users_own_is_left_alone(restore: Path, cwd: Path) -> None:
    resuming.bring(restore, cwd, spec(live=str(cwd)))
    assert list(cwd.iterdir()) == []


@pytest.mark.parametrize("content", ['{"place": "../../x"}', '{"place": 3}', "[]", "torn"])
def test_a_place_that_is_none_is_refused(restore: Path, cwd: Path, content: str) -> None:
    (restore / "adopted.json").write_text(content)
    with pytest.raises(RestoreError, match=r"adopted\.json"):
        resuming.bring(restore, cwd, spec())


def test_its_path_is_an_argument(restore: Path, tmp_path: Path) -> None:
    asked = spec(resume={"args": ["--resume_from_checkpoint", "{checkpoint}", "--ckpt={checkpoint}"]})
    where = restore / "out" / "checkpoint-20"
    told = ("--resume_from_checkpoint", str(where), f"--ckpt={where}")
    assert resuming.resumed(asked, restore).command == ("train.py", *told)


def test_the_path_of_one_that_was_written_for_the_queue_is_its_folder(tmp_path: Path) -> None:
    asked = spec(resume={"args": ["{checkpoint}"]})
    assert resuming.resumed(asked, tmp_path).command == ("train.py", str(tmp_path))


def test_an_unknown_placeholder_is_named() -> None:
    with pytest.raises(ValidationError, match=r"\{step\} is no placeholder: write \{checkpoint\}"):
        spec(resume={"args": ["--from", "{step}"]})
    assert spec(resume={"args": ['{"a": 1}']}).resume.args


def test_a_recipe_takes_no_arguments() -> None:
    with pytest.raises(ValidationError, match="a recipe resumes by itself"):
        spec(command=None, recipe={}, resume={"args": ["{checkpoint}"]})


def carry(*paths: str) -> Carry:
    files = [CarriedFile(path=path, size=1, sha256="", root=Root.CODE, attempt=AttemptId("att-1")) for path in paths]
    return Carry(attempt=AttemptId("att-1"), settled=True, files=files)


@pytest.mark.parametrize(
    ("args", "left", "nodes", "told"),
    [
        (["--init_from=resume"], carry("out/ckpt.pt", "train.log"), 1, ["--init_from=resume"]),
        (["--init_from=resume"], carry("train.log", "wandb/x", "config.yaml"), 1, []),  # nothing to go on from
        (["--init_from=resume"], None, 1, []),
        (["--from", "{checkpoint}"], carry("out/ckpt.pt"), 1, []),
        (["--init_from=resume"], carry("out/ckpt.pt"), 2, []),
    ],
)
def test_a_script_that_finds_its_own_files_is_told_to_go_on(
    args: list[str], left: Carry | None, nodes: int, told: list[str]
) -> None:
    asked = spec(resume={"args": args}, resources={"gpus": 2, "nodes": nodes})
    assert resuming.continued(asked, left).command == ("train.py", *told)
