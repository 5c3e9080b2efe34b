import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from torchyard.exceptions import SpecError
from torchyard.spec import JobSpec, Launcher
from torchyard.submission import drafts

NOWHERE = {"PATH": "/nonexistent"}


def yaml_file(folder: Path, text: str) -> Path:
    path = folder / "job.yaml"
    path.write_text(text)
    return path


def prepare(folder: Path, text: str, *overrides: str) -> drafts.PreparedSubmission:
    return drafts.prepare(drafts.from_file(yaml_file(folder, text), overrides), NOWHERE)


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
        ("command: [python, -m, pkg]\ncode: .\nlink: [data]\n", "link: there is no data in"),
        ("command: [python, -m, pkg]\ncode: .\nlink: [hidden, hidden/t.py]\n", "leave hidden/t.py out"),
        ("command: [python, -m, pkg]\nlive: .\nlink: [hidden]\n", "leave link out"),
        ("command: [python, -m, pkg]\nlink: [hidden]\n", "link: there is no code to join it to: add `code: .`"),
        ("command: [.tox/t.py]\ncode: .\n", ".tox never travels with a snapshot: move the file"),
        ("command: [far.py]\ncode: .\n", "far.py is a link out of the folder, to /"),
        ("command: [far.py]\ncode: .\n", "join it in with `link: [far.py]` (yard run: --link far.py)"),
        ("command: [sub/t.py]\ncode: .\n", "sub is a link to the folder"),
    ],
)
def test_a_script_that_would_be_missing_is_refused(tmp_path: Path, text: str, expected: str) -> None:
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "t.py").touch()
    (tmp_path / ".tox").mkdir()
    (tmp_path / ".tox" / "t.py").touch()
    (tmp_path / "far.py").symlink_to(__file__)
    (tmp_path / "sub").symlink_to("hidden")
    (tmp_path / ".yardignore").write_text("hidden/\n")
    assert expected in refusal(tmp_path, text)


def test_a_linked_script_and_a_module_are_fine(tmp_path: Path) -> None:
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "t.py").touch()
    (tmp_path / ".yardignore").write_text("hidden/\n")
    prepare(tmp_path, "command: [hidden/t.py]\ncode: .\nlink: [hidden]\n")
    prepare(tmp_path, "command: [python, -m, pkg.train]\ncode: .\n")


def test_link_alone_leaves_out_and_joins_in(tmp_path: Path) -> None:
    (tmp_path / "t.py").touch()
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "x").touch()
    made = prepare(tmp_path, "command: [t.py, data/x]\ncode: .\nlink: [./data/, data]\n")
    assert made.code is not None
    assert (made.spec.link, sorted(made.code.paths), made.warnings) == (("data",), ["job.yaml", "t.py"], ())


def test_a_linked_script_may_be_all_that_there_is(tmp_path: Path) -> None:
    (tmp_path / "t.py").symlink_to(__file__)
    (tmp_path / ".yardignore").write_text("*\n")
    made = prepare(tmp_path, "command: [t.py]\ncode: .\nlink: [t.py]\n")
    assert made.code is not None
    assert (made.code.root, made.code.files) == (tmp_path, ())


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


def test_scripts_that_train_no_replicas_are_warned_of(tmp_path: Path) -> None:
    (tmp_path / "t.py").write_text(
        "from torch.utils.data import DataLoader, DistributedSampler\n"
        "sampler = DistributedSampler(data)\n"
        "for epoch in range(3):\n"
        "    loss(data).backward()\n"
    )
    warnings = prepare(tmp_path, "command: [t.py]\ncode: .\n").warnings
    missing = [warning for warning in warnings if warning.startswith("t.py:2: ")]
    assert len(missing) == 2
    assert any("wrap the model in DistributedDataParallel" in warning for warning in missing)
    assert any("call set_epoch(epoch)" in warning for warning in missing)


@pytest.mark.parametrize(
    ("words", "gpus", "launcher", "name"),
    [
        (["python", "train.py", "--lr", "0.1"], 2, Launcher.TORCHRUN, "code-train"),
        (["python", "-u", "train.py"], 2, Launcher.TORCHRUN, "code-train"),
        (["train_v2.py"], 1, Launcher.TORCHRUN, "code-train_v2"),
        (["/usr/bin/python3.11", "a b.py"], 0, Launcher.PYTHON, "code-a-b"),
        (["python", "-m", "pkg.train"], 1, Launcher.TORCHRUN, "code-pkg.train"),
        (["./prepare.sh", "x"], 1, Launcher.NONE, "code-prepare"),
        (["nvidia-smi"], 1, Launcher.NONE, "nvidia-smi"),
        (["torchrun", "--nproc-per-node", "2", "train.py", "--lr", "1"], 2, Launcher.TORCHRUN, "code-train"),
        (["accelerate", "launch", "train.py"], 2, Launcher.NONE, "accelerate"),
    ],
)
def test_words_become_a_launcher_and_a_name(
    tmp_path: Path, words: list[str], gpus: int, launcher: Launcher, name: str
) -> None:
    (code := tmp_path / "code").mkdir()
    for script in ("train.py", "train_v2.py", "a b.py", "prepare.sh"):
        (code / script).touch()
    made = drafts.prepare(drafts.from_words(words, code, resources={"gpus": gpus}), NOWHERE)
    assert (made.spec.launcher, made.spec.name) == (launcher, name)


@pytest.mark.parametrize(
    ("text", "launcher"),
    [
        ("import somebodys_package\n", Launcher.PYTHON),
        ("import torch.distributed as dist\ndist.init_process_group('gloo')\n", Launcher.TORCHRUN),
    ],
)
def test_without_gpus_only_a_script_for_ranks_has_torchrun(tmp_path: Path, text: str, launcher: Launcher) -> None:
    (tmp_path / "t.py").write_text(text)
    spec = "command: [python, t.py]\ncode: .\nresources: {gpus: 0}\n"
    assert prepare(tmp_path, spec).spec.launcher is launcher


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ("command: [python, train.py, --lr, '1']", "vision-train"),
        ("command: python train.py", "vision-train"),
        ("recipe: {model: digits_cnn, data: digits}", "night-run"),
        ("command: [python, train.py]\nname: mine", "mine"),
    ],
)
def test_a_spec_file_without_a_name_is_named_for_what_it_runs(tmp_path: Path, spec: str, name: str) -> None:
    folder = tmp_path / "vision"
    folder.mkdir()
    (folder / "train.py").write_text("import torch\n")
    file = folder / "night-run.yaml"
    file.write_text(f"{spec}\ncode: .\n")
    assert drafts.prepare(drafts.from_file(file), NOWHERE).spec.name == name


SPAWNS = "import torch.multiprocessing as mp\nmp.spawn(print, nprocs=2)\n"


def test_a_script_that_starts_its_processes_itself_is_one_process(tmp_path: Path) -> None:
    (tmp_path / "t.py").write_text(SPAWNS)
    made = prepare(tmp_path, "command: [python, t.py]\ncode: .\nresources: {gpus: 2}\n")
    assert (made.spec.launcher, made.spec.world_size) == (Launcher.PYTHON, 1)
    assert made.launcher_reason == "t.py:2 (torch.multiprocessing.spawn) starts the processes itself"
    assert made.warnings == (f"launcher: python, because {made.launcher_reason}",)


def test_a_launcher_that_is_named_is_kept_and_warned_of(tmp_path: Path) -> None:
    (tmp_path / "t.py").write_text(SPAWNS)
    made = prepare(tmp_path, "command: [python, t.py]\nlauncher: torchrun\ncode: .\n")
    assert made.spec.launcher is Launcher.TORCHRUN
    assert "do not find each other under torchrun: say launcher: python" in made.warnings[0]


@pytest.mark.parametrize(("gpus", "warned"), [(1, False), (2, True)])
def test_copies_that_train_side_by_side_are_warned_of(tmp_path: Path, gpus: int, warned: bool) -> None:
    (tmp_path / "t.py").write_text("import torch\nfrom models import net\n")
    (tmp_path / "models.py").write_text("net = 1\n")
    text = f"command: [python, t.py]\ncode: .\nresources: {{gpus: {gpus}}}\n"
    assert any("joins no process group" in note for note in prepare(tmp_path, text).warnings) is warned
    (tmp_path / "models.py").write_text("import torch.distributed\nnet = 1\n")
    assert not prepare(tmp_path, text).warnings


@pytest.mark.parametrize("words", ["torchrun --standalone", "python -m torch.distributed.run", "torchrun"])
def test_torchrun_by_hand_is_left_out_and_said(tmp_path: Path, words: str) -> None:
    (tmp_path / "t.py").touch()
    typed = [*words.split(), "--nproc_per_node=2", "t.py", "--lr", "1"]
    made = drafts.prepare(drafts.from_words(typed, tmp_path), NOWHERE)
    assert made.spec.command == ("python", "t.py", "--lr", "1")
    assert (made.spec.launcher, made.spec.resources.gpus) == (Launcher.TORCHRUN, 2)
    assert f"`{words} --nproc_per_node=2` is left out" in made.warnings[0]


def test_another_number_of_processes_is_refused_with_the_mend(tmp_path: Path) -> None:
    text = "command: [torchrun, --nproc-per-node=4, t.py]\ncode: .\nresources: {gpus: 2}\n"
    assert "say --gpus 4" in refusal(tmp_path, text)
    nodes = "command: [torchrun, --nnodes=2, t.py]\ncode: .\n"
    assert "resources: {nodes: 2}" in refusal(tmp_path, nodes)


@pytest.mark.parametrize("typed", ["torchrun --standalone t.py", "accelerate launch t.py", "python -m deepspeed t.py"])
def test_an_explicit_none_is_believed(tmp_path: Path, typed: str) -> None:
    (tmp_path / "t.py").touch()
    made = drafts.prepare(drafts.from_words(typed.split(), tmp_path, launcher="none"), NOWHERE)
    assert (made.spec.launcher, made.spec.command) == (Launcher.NONE, tuple(typed.split()))


@pytest.mark.parametrize(
    ("typed", "mend"),
    [
        ("torchrun t.py", "add --standalone"),
        ("torchrun --standalone t.py", None),
        ("accelerate launch --multi_gpu t.py", "add --main_process_port 0"),
        ("accelerate launch --main_process_port 0 t.py", None),
    ],
)
def test_a_launcher_of_its_own_is_told_of_the_port_that_all_take(tmp_path: Path, typed: str, mend: str | None) -> None:
    (tmp_path / "t.py").touch()
    draft = drafts.from_words(typed.split(), tmp_path, launcher="none", resources={"gpus": 2})
    told = [note for note in drafts.prepare(draft, NOWHERE).warnings if "port 29500" in note]
    assert [note.rpartition(": ")[2] for note in told] == ([mend] if mend else [])


def test_a_program_of_no_machine_is_refused_unless_the_launcher_is_named(tmp_path: Path) -> None:
    (tmp_path / "t.py").touch()
    assert "there is no program pyhton; did you mean python?" in refusal(tmp_path, "command: [pyhton, t.py]\ncode: .\n")
    made = prepare(tmp_path, "command: [pyhton, t.py]\nlauncher: none\ncode: .\n")
    assert any("no program pyhton on this machine" in note for note in made.warnings)
    assert "give it by `--env CUDA=1`" in refusal(tmp_path, "command: [CUDA=1, python, t.py]\ncode: .\n")


def test_a_missing_script_names_the_one_that_is_meant(tmp_path: Path) -> None:
    (tmp_path / "train.py").touch()
    assert "; did you mean train.py?" in refusal(tmp_path, "command: [python, trian.py]\ncode: .\n")
    made = prepare(tmp_path, f"command: [python, {tmp_path}/gone.py]\ncode: .\n")
    assert any(f"there is no {tmp_path}/gone.py on this machine" in note for note in made.warnings)


def test_words_that_no_file_can_be_named_by_are_arguments(tmp_path: Path) -> None:
    (tmp_path / "train.py").touch()
    words = ["python", "train.py", "--prompt", "a" * 300, "nul\\tab"]
    assert drafts.prepare(drafts.from_words(words, tmp_path), NOWHERE).spec.command == tuple(words)
    assert "there is no" in refusal(tmp_path, f"command: [python, {'a' * 300}.py]\ncode: .\n")
    assert "there is no" in refusal(tmp_path, f"command: [python, train.py]\nlink: [{'a' * 300}]\ncode: .\n")


def test_what_lies_beside_the_folder_does_not_travel(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    code = tmp_path / "code"
    (code / "sub").mkdir(parents=True)
    for path in (code / "train.py", tmp_path / "train.py"):
        path.touch()
    told = refusal(code, "command: [python, ../train.py]\ncode: .\n")
    assert "../train.py is outside of" in told
    assert "yardignore" not in told
    made = prepare(code, "command: [python, sub/../train.py, --data, ../data, --out, ../none]\ncode: .\n")
    assert [note for note in made.warnings if "outside" in note] == [
        "../data is outside of the folder that travels: if the job reads it, give its whole path"
    ]


def test_a_python_without_torch_is_said_with_the_command_that_mends_it(tmp_path: Path) -> None:
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "t.py").write_text("import torch\n")
    text = f"command: [python, t.py]\npython: {venv}\ncode: .\n"
    made = prepare(folder, text)
    assert made.spec.launcher is Launcher.TORCHRUN
    assert f"`{venv}/bin/python -m pip install torch`" in made.warnings[0]
    (folder / "t.py").write_text("import json\n")
    made = prepare(folder, text)
    assert made.spec.launcher is Launcher.PYTHON
    assert made.warnings == (f"launcher: python, because {made.launcher_reason}",)


def test_words_take_the_working_directory_as_code(tmp_path: Path) -> None:
    (tmp_path / "t.py").touch()
    resources: dict[str, Any] = {"gpus": 2}
    draft = drafts.from_words(["python", "t.py"], tmp_path, resources=resources, name=None, time_limit="1h")
    made = drafts.prepare(draft, NOWHERE)
    assert made.code is not None
    assert (made.spec.resources.gpus, made.spec.time_limit, made.spec.python) == (2, 3600, None)


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["python", "main.py"], "minGPT-ddp-main"),
        (["mingpt/main.py", "--lr", "1"], "minGPT-ddp-main"),
        (["torchrun", "--nproc_per_node", "2", "main.py"], "minGPT-ddp-main"),
        (["python", "-m", "pkg.train"], "minGPT-ddp-pkg.train"),
        (["./run.sh"], "minGPT-ddp-run"),
        (["sleep", "600"], "sleep"),
        (["python", "-c", "pass"], "python"),
        (["python", "a b(1).py"], "minGPT-ddp-a-b-1"),
        (["python", f"{'s' * 80}.py"], "s" * 63),
        (["python", f"{'s' * 55}.py"], f"minGPT--{'s' * 55}"),
    ],
)
def test_a_job_is_named_for_its_folder_and_its_script(tmp_path: Path, words: list[str], name: str) -> None:
    folder = tmp_path / "minGPT-ddp"
    folder.mkdir()
    assert drafts.from_words(words, folder).data["name"] == name


@pytest.mark.parametrize(
    ("override", "field", "value"),
    [
        ("env.SLOW=0", "env", {"A": "1", "SLOW": "0"}),
        ("env.SLOW=on", "env", {"A": "1", "SLOW": "on"}),
        ("env.SLOW='a b'", "env", {"A": "1", "SLOW": "a b"}),
        ("env.SLOW=", "env", {"A": "1", "SLOW": ""}),
        ("env={B: 0.10}", "env", {"B": "0.10"}),
        ("command=[t.py, --lr, 0.10]", "command", ("t.py", "--lr", "0.10")),
        ("command=t.py --name 'a b'", "command", ("t.py", "--name", "a b")),
    ],
)
def test_words_stay_what_was_written(tmp_path: Path, override: str, field: str, value: object) -> None:
    (tmp_path / "t.py").touch()
    made = prepare(tmp_path, "command: t.py --lr 0.1\nenv: {A: 1}\ncode: .\n", override)
    assert getattr(made.spec, field) == value


def test_a_programs_own_numbers_and_truths_become_words() -> None:
    spec = JobSpec.model_validate({"command": ["a", 1, 0.5, True], "env": {"N": 3, "ON": False}})
    assert (spec.command, spec.env) == (("a", "1", "0.5", "true"), {"N": "3", "ON": "false"})
