"""Checks of the program that a command names, as far as the submitting machine can tell."""

import difflib
import os
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from torchyard import presence
from torchyard.analysis import commands, interpreters, launch_commands
from torchyard.analysis.launchers import LauncherChoice
from torchyard.exceptions import SpecError
from torchyard.spec import JobSpec, Launcher

_COMMON = (
    "python",
    "python3",
    "torchrun",
    "accelerate",
    "deepspeed",
    "mpirun",
    "bash",
    "jupyter",
    "conda",
    "make",
    "uv",
)
_CLOSE = 0.75
#: What a shell would take for a variable before a program.
_VARIABLE = re.compile(r"[A-Za-z_]\w*=")


def check(
    given: JobSpec,
    choice: LauncherChoice,
    python: interpreters.Python | None,
    environment: Mapping[str, str] | None = None,
) -> list[str]:
    """Warnings; `given` is the spec before its launcher was chosen.

    Raises SpecError for a notebook, and for a program that is on no machine, such as ``pyhton``, unless the launcher
    was named.
    """
    own = os.environ if environment is None else environment
    words = choice.command
    _refuse_notebook(words)
    if _runs_as_it_is(given, words):
        return [*_unknown_program(given, words[0], _search_path(python, own)), *_shared_port(given, words)]
    return [*_no_torch(choice.launcher, python), *_absent_script(words)]


def _refuse_notebook(words: Sequence[str]) -> None:
    program = commands.program(words).script if commands.is_python(words) else words[0]
    if program is not None and program.endswith(".ipynb"):
        raise SpecError(
            f"command: {program} is a notebook, which nothing runs as it is: make a script of it (`jupyter nbconvert "
            f"--to script {program}`), or run all its cells (`papermill {program} done.ipynb`)"
        )


def _runs_as_it_is(given: JobSpec, words: Sequence[str]) -> bool:
    return given.launcher is Launcher.NONE or (given.launcher is Launcher.AUTO and not commands.is_python(words))


def _search_path(python: interpreters.Python | None, environment: Mapping[str, str]) -> str:
    own = environment.get("PATH", os.defpath)
    return own if python is None else f"{Path(python.program).parent}:{own}"


def _unknown_program(given: JobSpec, word: str, path: str) -> list[str]:
    if _VARIABLE.match(word) and not shutil.which(word, path=path):
        raise SpecError(f"command: {word} is a variable, not a program: give it by `--env {word}` (`env:` in a spec)")
    if "/" in word or shutil.which(word, path=given.env.get("PATH", path)):
        return []
    meant = "" if word in _COMMON else did_you_mean(word, _COMMON)
    if meant and given.launcher is Launcher.AUTO:
        raise SpecError(f"command: there is no program {word}{meant} (launcher: none takes it as it is)")
    return [f"command: there is no program {word} on this machine{meant}: the node must have it on its PATH"]


def _shared_port(given: JobSpec, words: Sequence[str]) -> list[str]:
    """Port at which a launcher in the command listens, the same for all jobs unless it is told otherwise."""
    typed, told = launch_commands.by_hand(words), tuple[str, ...]()
    if typed in {"torchrun", "-m torch.distributed.run", "-m torch.distributed.launch"}:
        mend, told = "--standalone", ("--standalone", "--rdzv", "--master")
    elif typed in {"accelerate", "-m accelerate"} and given.resources.gpus > 1:
        mend, told = "--main_process_port 0", ("--main_process_port", "--main-process-port")
    else:
        return []
    if any(word.startswith(told) for word in words):
        return []
    return [f"command: {typed} takes port 29500, which collides with other jobs of the box: add {mend}"]


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``; did you mean …?`` for the nearest of the known words; empty if none is near."""
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=_CLOSE)
    return f"; did you mean {close[0]}?" if close else ""


def _absent_script(words: Sequence[str]) -> list[str]:
    script = commands.program(words).script
    if script is None or not script.startswith("/") or presence.exists(script):
        return []
    return [f"command: there is no {script} on this machine: the node must have it"]


def _no_torch(launcher: Launcher, python: interpreters.Python | None) -> list[str]:
    if python is None or python.has_torch or not launcher.ranked:
        return []
    return [
        f"{python.path} has no torch, which torchrun needs: `{python.program} -m pip install torch`, activate the "
        "environment of the job, or name it under python:"
    ]
