"""Analysis of a command and the files that it starts: its launcher, and mistakes in it.

All submissions come through here, those of ``yard run`` and of a spec file as well as those of `torchyard.Client`.
"""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from torchyard import presence, snapshot
from torchyard.analysis import commands, findings, interpreters, launchers, programs
from torchyard.analysis.scripts import facts, replicas, source
from torchyard.exceptions import SpecError
from torchyard.spec import JobSpec, Launcher, Tracker
from torchyard.spec.credentials import credentials


@dataclass(frozen=True, kw_only=True)
class Analysis:
    """A spec with its launcher decided, and what its owner should know."""

    spec: JobSpec
    warnings: tuple[str, ...] = ()
    launcher_reason: str = ""
    """Why `launcher: auto` became what it is."""


def analyse(
    spec: JobSpec,
    *,
    code: snapshot.CodeSnapshot | None = None,
    python: interpreters.Python | None = None,
    environment: Mapping[str, str] | None = None,
) -> Analysis:
    """Decide the launcher, and look for mistakes in the command and its script.

    `code` is the snapshot that the job will have; without one, the files of `live` are read. Raises SpecError with the
    mend for a command that cannot run.
    """
    if spec.command is None:
        return Analysis(spec=spec, warnings=credential_warnings(spec.env))
    command = _Command(spec=spec, words=spec.command, code=code)
    choice = launchers.choose(spec, command.read, has_torch=python.has_torch if python else None)
    if choice.mismatch:
        raise SpecError(f"command: {choice.mismatch}")
    decided = choice.applied(spec)
    command = _Command(spec=decided, words=choice.command, code=code)
    warnings = (
        *credential_warnings(spec.env),
        *programs.check(spec, choice, python, environment),
        *_check_command(command),
    )
    return Analysis(spec=decided, warnings=warnings, launcher_reason=choice.reason or "")


def credential_warnings(env: Any) -> tuple[str, ...]:
    """Return warnings of keys and passwords in the `env` of a spec, whose values are not repeated."""
    given = {name: value for name, value in env.items() if isinstance(value, str)} if isinstance(env, Mapping) else {}
    return tuple(
        f"env.{name} looks like a key or a password, which the database would keep as it is: `yard secrets set {name}` "
        f"and `secrets: [{name}]` (yard run: --secret {name}) give it to the job alone"
        for name in credentials(given)
    )


def of_live(given: JobSpec | Mapping[str, Any]) -> Analysis | None:
    """The analysis of a job that runs in a folder of this machine; None for any other, and for what is no spec."""
    try:
        spec = given if isinstance(given, JobSpec) else JobSpec.model_validate(given)
    except ValidationError:
        return None  # the service names what is wrong
    if spec.live is None or not presence.is_folder(spec.live):
        return None
    return analyse(spec, python=interpreters.python_at(spec.python) if spec.python else None)


@dataclass(frozen=True, kw_only=True)
class _Command:
    spec: JobSpec
    words: tuple[str, ...]
    code: snapshot.CodeSnapshot | None
    root: Path | None = field(init=False)

    def __post_init__(self) -> None:
        live = Path(self.spec.live) if self.spec.live else None
        object.__setattr__(self, "root", self.code.root if self.code else live)

    @property
    def program(self) -> str | None:
        """The file that the command starts, if it is one of the user's own."""
        if self.spec.launcher is not Launcher.NONE:
            return commands.program(self.words).script
        return self.words[0] if "/" in self.words[0] else None

    def travels(self, path: str) -> bool:
        """Return whether a relative path will be there on the node."""
        clean = os.path.normpath(path)
        if self.code is None or any(clean == link or clean.startswith(f"{link}/") for link in self.spec.link):
            return True
        return clean == "." or any(each == clean or each.startswith(f"{clean}/") for each in self.code.paths)

    def read(self, path: str) -> str | None:
        """The text of a file that will be there on the node; None where there is none."""
        if self.root is None or not self.travels(path):
            return None
        file = self.root / path
        try:
            return file.read_text(errors="replace") if file.stat().st_size <= source.MAX_BYTES else None
        except OSError:
            return None


def _check_command(command: _Command) -> list[str]:
    return _program_warnings(command) + _source_warnings(command) + _tracker_warnings(command.spec)


def _tracker_warnings(spec: JobSpec) -> list[str]:
    """Warn of stores that are not the job's own: the node reads only runs that name its job; Trackio's do not."""
    chosen = spec.env.get("TRACKIO_DIR")
    if chosen is None or Tracker.TRACKIO not in spec.read_trackers or not (spec.live or Path(chosen).is_absolute()):
        return []
    return [f"env.TRACKIO_DIR: rows in {chosen} do not tell which job wrote them: no curves of Trackio; leave it out"]


def _source_warnings(command: _Command) -> list[str]:
    program = launchers.read_program(command.spec, command.read)
    if program is None:
        return _syntax_warnings(command)
    ranked = command.spec.launcher.ranked
    return [
        *launchers.doubts(command.spec, facts.of(program)),
        *findings.in_script(program.entry, ranked=ranked),
        *replicas.notes(program),
    ]


def _syntax_warnings(command: _Command) -> list[str]:
    """Warn of a script that this Python cannot read; the node's may be newer."""
    text = command.read(command.program) if command.program and commands.is_python(command.words) else None
    error = None if text is None else source.syntax_error(text)
    if error is None:
        return []
    version = ".".join(map(str, sys.version_info[:2]))
    return [f"command: {command.program}, line {error.lineno}: {error.msg}, as Python {version} reads it"]


def _program_warnings(command: _Command) -> list[str]:
    """Warnings about the command's own file and arguments; raises SpecError where it cannot run at all."""
    program = command.program
    if program is None:
        return _argument_warnings(command)
    if Path(program).is_absolute():
        return _argument_warnings(command)
    if command.root is None:
        if command.spec.code is None:
            raise SpecError(f"command: {program} is a relative path, but there is no code: add `code: .` or live:")
        return []
    if not command.travels(program) or (command.code is None and not presence.exists(command.root / program)):
        raise SpecError(_missing(program, command.root))
    return _argument_warnings(command)


def _missing(path: str, root: Path) -> str:
    if not presence.exists(root / path):
        meant = programs.did_you_mean(path, (str(each.relative_to(root)) for each in (root / path).parent.glob("*")))
        return (
            f"command: there is no {path} in {root}{meant}: mend the path, or `code:`, the folder that it starts from"
        )
    if _is_outside(path):
        return (
            f"command: {path} is outside of {root}, the folder that travels: name one that holds both as `code:` (yard "
            "run: --code) and the script from there, or run the folder itself with live:"
        )
    why, joined = _left_out(root, Path(path))
    return f"command: {path} is in {root}, but {why}join it in with `link: [{joined}]` (yard run: --link {joined})"


def _is_outside(path: str) -> bool:
    return Path(os.path.normpath(path)).parts[0] == ".."


def _left_out(root: Path, path: Path) -> tuple[str, Path]:
    """Return the reason why a file is not in the snapshot, with the mend, and what could be linked in instead."""
    for step in reversed([path, *path.parents[:-1]]):
        problem = snapshot.link_problem(root, (root / step).resolve()) if (root / step).is_symlink() else None
        if problem is not None:
            return f"{step} is {problem}: ", step
        if snapshot.never_travels(root / step):
            return f"{step} never travels with a snapshot: move the file, or ", step
    return f"an ignore file keeps it out of the snapshot: bring it back in .yardignore (`!{path}`), or ", Path(
        path.parts[0]
    )


def _argument_warnings(command: _Command) -> list[str]:
    """Arguments that name something in the folder which does not travel with the snapshot."""
    if command.code is None:
        return []
    found = []
    for word in command.words:
        value = word.rpartition("=")[2] if word.startswith("-") else word
        path = Path(value)
        if not value or path.is_absolute() or command.travels(value) or not presence.exists(command.code.root / path):
            continue
        if _is_outside(value):
            found.append(f"{value} is outside of the folder that travels: if the job reads it, give its whole path")
        else:
            found.append(
                f"{value} is not part of the snapshot: if the job reads it, add `link: [{path.parts[0]}]` "
                f"(yard run: --link {path.parts[0]})"
            )
    return found
