import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import torchyard
from torchyard.cli import main
from torchyard.exceptions import NotRunningError

COMMANDS = (
    "up run submit ls show logs metrics cancel rerun checkpoints pull nodes why token users hold release wait sweep "
    "policy quota usage reserve reservations queue change doctor"
)
#: What is too slow to load before a command needs it.
HEAVY = ("pydantic", "httpx", "rich", "yaml", "torch", "numpy", "pickle", "hashlib", "torchyard.client.client")


def yard(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "torchyard.cli.main", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **environment})


def test_help_lists_every_command() -> None:
    shown = yard("--help").stdout
    for command in [*COMMANDS.split(), "service", "worker", "version", "down", "login"]:
        assert re.search(rf"^  {command} ", shown, re.MULTILINE), command


def test_the_version_is_an_option_and_a_command() -> None:
    assert yard("--version").stdout == f"yard {torchyard.__version__}\n"
    assert yard("version").stdout == f"{torchyard.__version__}\n"


def test_help_loads_nothing_heavy() -> None:
    code = "import sys, torchyard.cli.main; print(*sys.modules)"
    loaded = set(
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    )
    assert loaded.isdisjoint(HEAVY)


def test_commands_load_no_more_of_httpx_and_specs_than_they_use() -> None:
    code = """
import sys
from torchyard.cli import main
sys.argv = ["yard", "version"]
try:
    main.run()
except SystemExit:
    import torchyard.client.client
    print(torchyard.api.Job.__name__, *sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert loaded >= {"httpx", "pydantic", "Job"}
    assert loaded.isdisjoint({"click", "rich", "torchyard.spec.job", "torchyard.recipe"})


def test_errors_are_one_line_with_the_mend(tmp_path: Path) -> None:
    done = yard("ls", TORCHYARD_HOME=str(tmp_path))
    assert done.returncode == 1
    assert done.stderr == f"yard: {NotRunningError()}\n"
    assert "yard up" in done.stderr


def test_run_that_cannot_submit_is_no_exit_code_of_a_job(tmp_path: Path) -> None:
    done = yard("run", "--", "true", TORCHYARD_HOME=str(tmp_path))
    assert done.returncode == main.OWN_FAILURE
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("words", [["run"], ["show"], ["ls", "--what"], ["run", "--gpus", "many", "--", "true"]])
def test_wrong_usage_is_explained(words: list[str]) -> None:
    done = yard(*words)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "Usage: yard" in done.stderr


def test_a_full_disk_is_one_line_with_the_mend() -> None:
    command = [sys.executable, "-m", "torchyard.cli.main", "--help"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "yard: the disk is full: where this command writes; make room there, then run it again\n"


def test_a_reader_that_has_gone_ends_a_command_as_sigpipe_would() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "torchyard.cli.main", "version"]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


def test_what_an_encoding_lacks_is_written_as_a_question_mark() -> None:
    code = """
import sys
from torchyard.cli import common, main
sys.argv = ["yard", "version"]
try:
    main.run()
except SystemExit:
    common.line("█ 数")
"""
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout == f"{torchyard.__version__}\n? ?\n"


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-"])
def test_a_stream_that_is_closed_stops_no_command(closed: str, tmp_path: Path) -> None:
    command = f"{sys.executable} -m torchyard.cli.main ls {closed}"
    environment = {**os.environ, "TORCHYARD_HOME": str(tmp_path)}
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False, env=environment)
    told = "" if closed == "2>&-" else f"yard: {NotRunningError()}\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", told)
