from pathlib import Path
from typing import Any

import pytest

from torchyard import submission
from torchyard.exceptions import SpecError
from torchyard.spec import Launcher

NOWHERE = {"PATH": "/nonexistent"}


def yaml_file(folder: Path, text: str) -> Path:
    path = folder / "job.yaml"
    path.write_text(text)
    return path


def prepare(folder: Path, text: str, *overrides: str) -> submission.Prepared:
    return submission.prepare(submission.from_file(yaml_file(folder, text), overrides), NOWHERE)


def refusal(folder: Path, text: str, *overrides: str) -> str:
    with pytest.raises(SpecError) as caught:
        prepare(folder, text, *overrides)
    return str(caught.value)


def test_errors_name_line_column_field_and_mend(tmp_path: Path) -> None:
    message = refusal(tmp_path, "name: x\nresources:\n  gpus: many\n  gpu: 2\nrecipe: {modle: a}\n")
    lines = message.splitlines()
    assert lines[0].startswith(f"{tmp_path / 'job.yaml'}:3:3: resources.gpus: ")
    assert lines[1].startswith(f"{tmp_path / 'job.yaml'}:4:3: resources.gpu: unknown field; did you mean gpus?")
    assert ":5:10: recipe.modle: unknown field; did you mean model?" in lines[2]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name: [x\n", "job.yaml:2:1: not valid YAML"),
        ("- a\n", "a job spec is a mapping"),
        ("", "a job spec is a mapping"),
        ("name: a\nname: b\nrecipe: {}\n", "job.yaml:2:1: name: given twice"),
        ("name: !!python/object:os.system x\n", "job.yaml:1:7: could not determine a constructor"),
        ("name: x\n", "give either a recipe (the built-in trainer) or a command"),
    ],
)
def test_bad_files_are_explained(tmp_path: Path, text: str, expected: str) -> None:
    assert expected in refusal(tmp_path, text)


def test_code_and_live_exclude_each_other(tmp_path: Path) -> None:
    assert "code and live" in refusal(tmp_path, "recipe: {}\ncode: .\nlive: /x\n")


def test_words_and_environment_keep_what_was_written(tmp_path: Path) -> None:
    (tmp_path / "t.py").touch()
    made = prepare(tmp_path, "command: [t.py, --lr, 1e-3, 0x10, true]\nenv: {N: 08, FLAG: yes}\ncode: .\n")
    assert made.spec.command == ("t.py", "--lr", "1e-3", "0x10", "true")
    assert made.spec.env == {"N": "08", "FLAG": "yes"}


def test_overrides_replace_fields(tmp_path: Path) -> None:
    made = prepare(tmp_path, "recipe: {epochs: 5}\n", "recipe.epochs=2", "resources.gpus=2", "time_limit=4h")
    assert made.spec.recipe is not None
    assert (made.spec.recipe.epochs, made.spec.resources.gpus, made.spec.time_limit) == (2, 2, 14400)
    assert "write field=value" in refusal(tmp_path, "recipe: {}\n", "resources.gpus")


def test_code_is_the_folder_relative_to_the_file(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "train.py").write_text("print()\n")
    made = prepare(tmp_path, "command: [python, train.py]\ncode: src\n")
    assert made.code is not None
    assert made.code.paths == {"train.py"}
    assert made.code.root == tmp_path / "src"


def test_a_relative_live_folder_becomes_absolute(tmp_path: Path) -> None:
    (tmp_path / "train.py").touch()
    made = prepare(tmp_path, "command: [train.py]\nlive: .\n")
    assert (made.spec.live, made.code) == (str(tmp_path), None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("command: [train.py]\ncode: .\n", "there is no train.py in"),
        ("command: [python, gone.py]\nlive: .\n", "there is no gone.py in"),
        ("command: [hidden/t.py]\ncode: .\n", "`link: [hidden]`"),
        ("command: [train.py]\n", "add `code: .` or live:"),
        ("command: [./run.sh]\nlauncher: none\ncode: .\n", "there is no ./run.sh in"),
        ("command: [python, -m, pkg]\ncode: .\nlink: [data]\n", "'data' is not a folder in"),
    ],
)
def test_a_script_that_would_be_missing_is_refused(tmp_path: Path, text: str, expected: str) -> None:
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "t.py").touch()
    (tmp_path / ".yardignore").write_text("hidden/\n")
    assert expected in refusal(tmp_path, text)


def test_a_linked_script_and_a_module_are_fine(tmp_path: Path) -> None:
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "t.py").touch()
    (tmp_path / ".yardignore").write_text("hidden/\n")
    prepare(tmp_path, "command: [hidden/t.py]\ncode: .\nlink: [hidden]\n")
    prepare(tmp_path, "command: [python, -m, pkg.train]\ncode: .\n")


def test_arguments_that_stay_behind_are_warned_of(tmp_path: Path) -> None:
    (tmp_path / "t.py").touch()
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "x").touch()
    (tmp_path / ".gitignore").write_text("data/\n")
    text = "command: [t.py, --data=data/x, --out, nothing]\ncode: .\n"
    assert [w for w in prepare(tmp_path, text).warnings if "`link: [data]`" in w]
    assert not prepare(tmp_path, text + "link: [data]\n").warnings


def test_scripts_that_leave_their_allocation_are_warned_of(tmp_path: Path) -> None:
    (tmp_path / "t.py").write_text(
        "import os\n"
        "os.environ['CUDA_VISIBLE_DEVICES'] = '0,1'\n"
        "device = 'cuda:0'\n"
        "DDP(model, device_ids=[0, 1])\n"
        "init(init_method='tcp://127.0.0.1:23456')\n"
        "os.environ['MASTER_PORT'] = '29500'\n"
        "# device = 'cuda:1'\n"
        "device = f'cuda:{rank}'\n"
        "visible = os.environ.get('CUDA_VISIBLE_DEVICES')\n"
    )
    warnings = prepare(tmp_path, "command: [t.py]\ncode: .\n").warnings
    assert [warning.split(": ")[0] for warning in warnings] == [f"t.py:{n}" for n in (2, 3, 4, 5, 6)]


@pytest.mark.parametrize(
    ("words", "gpus", "launcher", "name"),
    [
        (["python", "train.py", "--lr", "0.1"], 2, Launcher.TORCHRUN, "train"),
        (["train_v2.py"], 1, Launcher.TORCHRUN, "train_v2"),
        (["/usr/bin/python3.11", "a b.py"], 0, Launcher.PYTHON, "a-b"),
        (["python", "-m", "pkg.train"], 1, Launcher.TORCHRUN, "python"),
        (["./prepare.sh", "x"], 1, Launcher.NONE, "prepare"),
        (["nvidia-smi"], 1, Launcher.NONE, "nvidia-smi"),
    ],
)
def test_words_become_a_launcher_and_a_name(words: list[str], gpus: int, launcher: Launcher, name: str) -> None:
    assert submission.launcher_for(words, gpus) is launcher
    assert submission.name_for(words) == name


@pytest.mark.parametrize("by_hand", ["torchrun", "python -m torch.distributed.launch"])
def test_a_launcher_by_hand_is_refused(tmp_path: Path, by_hand: str) -> None:
    with pytest.raises(SpecError, match=f"leave {by_hand.removeprefix('python ')} out"):
        submission.from_words([*by_hand.split(), "--nproc-per-node=2", "t.py"], tmp_path)


def test_a_launcher_by_hand_in_a_file_is_warned_of(tmp_path: Path) -> None:
    text = "command: [python, -m, torch.distributed.run, t.py]\ncode: .\n"
    assert [note for note in prepare(tmp_path, text).warnings if "leave -m torch.distributed.run out" in note]
    assert not prepare(tmp_path, text + "launcher: none\n").warnings


def test_words_take_the_working_directory_as_code(tmp_path: Path) -> None:
    (tmp_path / "t.py").touch()
    resources: dict[str, Any] = {"gpus": 2}
    draft = submission.from_words(["python", "t.py"], tmp_path, resources=resources, name=None, time_limit="1h")
    made = submission.prepare(draft, NOWHERE)
    assert made.code is not None
    assert (made.spec.resources.gpus, made.spec.time_limit, made.spec.python) == (2, 3600, None)
