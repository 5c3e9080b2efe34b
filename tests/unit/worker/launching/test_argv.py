from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from torchyard.analysis import commands
from torchyard.spec import JobSpec
from worker.launching import argv
from worker.launching.rendezvous import NodeRendezvous
from worker.shim import rank

PROGRAMS = argv.Programs(
    worker=Path("/ty/bin/python"), job=Path("/env/bin/python"), rank=Path("/ty/rank.py"), elastic=Path("/ty/elastic.py")
)
PLACES = argv.AttemptPaths(
    logs=Path("/a/logs"), marks=Path("/a/marks"), cwd=Path("/a/code"), recipe=Path("/a/recipe.json")
)


def command(**spec: Any) -> str:
    return " ".join(argv.main_process(JobSpec.model_validate(spec), PROGRAMS, PLACES))


def test_torchrun_starts_the_wrapper_around_the_users_python() -> None:
    assert command(command=["python", "train.py", "--lr", "0.1"], resources={"gpus": 2}) == (
        "/env/bin/python /ty/elastic.py --nproc-per-node=2 --max-restarts=0"
        " --no-python /ty/bin/python -I -S /ty/rank.py /a/logs /a/marks /a/code"
        " -- /env/bin/python -u train.py --lr 0.1"
    )


def test_a_recipe_runs_in_the_workers_own_python() -> None:
    assert command(recipe={}, resources={"gpus": 1}) == (
        "/ty/bin/python /ty/elastic.py --nproc-per-node=1 --max-restarts=0"
        " --no-python /ty/bin/python -I -S /ty/rank.py /a/logs /a/marks /a/code"
        " -- /ty/bin/python -P -u -m trainer /a/recipe.json"
    )


def test_a_recipes_servers_are_processes_without_a_gpu() -> None:
    recipe = {"strategy": {"name": "parameter_server", "servers": 2, "async": True}}
    assert "--nproc-per-node=4 " in command(recipe=recipe, resources={"gpus": 2})


def test_several_nodes_meet_at_a_fixed_place() -> None:
    met = NodeRendezvous(nodes=2, node_rank=1, address="10.0.0.1", port=20001, interface="eth0")
    spec = JobSpec.model_validate({"command": ["train.py"], "resources": {"gpus": 2, "nodes": 2}})
    words = " ".join(argv.main_process(spec, PROGRAMS, replace(PLACES, rendezvous=met)))
    assert words.startswith(
        "/env/bin/python -m torch.distributed.run --nnodes=2 --node-rank=1 --rdzv-backend=static"
        " --master-addr=10.0.0.1 --master-port=20001 --nproc-per-node=2 --max-restarts=0"
    )


def test_python_is_one_process() -> None:
    assert command(launcher="python", command=["train.py", "-v"]) == "/env/bin/python -u train.py -v"
    assert command(launcher="python", command=["python3", "-m", "pkg"]) == "/env/bin/python -u -m pkg"


def test_none_is_the_command_as_it_is() -> None:
    assert command(launcher="none", command=["python", "train.py"]) == "python train.py"


def test_launch_tells_each_rank_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_RANK", "1")
    spec = JobSpec.model_validate({"launcher": "launch", "command": ["python", "train.py", "--lr", "1"]})
    words = argv.main_process(spec, PROGRAMS, PLACES, "--local_rank")
    told = words.index("--")
    assert words[told - 2 : told] == ["--local_rank", "3"]
    assert rank.with_local_rank(words[told + 1 :], "--local_rank", "3") == [
        *("/env/bin/python", "-u", "train.py", "--local_rank=1", "--lr", "1")
    ]


@pytest.mark.parametrize(
    ("arguments", "script", "module", "own"),
    [
        (["train.py", "--lr"], "train.py", None, 1),
        (["-W", "error", "-X", "dev", "-u", "train.py"], "train.py", None, 6),
        (["-m", "pkg.train", "x"], None, "pkg.train", 2),
        (["-mpkg", "x"], None, "pkg", 1),
        (["-c", "print(1)", "x"], None, None, 2),
        (["-", "x"], None, None, 1),
        ([], None, None, 0),
    ],
)
def test_the_program_among_the_interpreters_arguments(
    arguments: list[str], script: str | None, module: str | None, own: int
) -> None:
    assert commands.python_program(arguments) == commands.PythonProgram(script=script, module=module, own=own)
