"""From a YAML file, or the words of ``yard run``, to a spec that the service takes: code, Python, warnings."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from torchyard import api, by_hand, commands, findings, inspection, launchers, programs, snapshot, specfile
from torchyard.client import Client
from torchyard.exceptions import SpecError
from torchyard.scripts import facts, replicas, source
from torchyard.spec import MAX_NAME, SNAPSHOT_ID, JobSpec, Launcher


@dataclass(frozen=True, kw_only=True)
class Draft:
    """A spec as a person wrote it; `code` may be a folder."""

    data: dict[str, Any]
    base: Path
    """Where relative paths start: the folder of the file, or the working directory."""
    file: specfile.SpecFile | None = None


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A spec that is ready but for its code, which is still to be uploaded."""

    spec: JobSpec
    code: snapshot.Snapshot | None
    warnings: tuple[str, ...] = ()
    launcher_reason: str = ""
    """Why `launcher: auto` became what it is."""

    def submit(self, client: Client, *, uploaded: Callable[[int], None] = lambda _bytes: None) -> api.Job:
        """Uploads the code and submits the job; `uploaded` gets the bytes of each file."""
        return client.submit(self._with_code(client, uploaded), launcher_reason=self.launcher_reason)

    def submit_sweep(self, client: Client, *, uploaded: Callable[[int], None] = lambda _bytes: None) -> api.Group:
        """The same for a spec with `sweep`."""
        return client.submit_sweep(self._with_code(client, uploaded), launcher_reason=self.launcher_reason)

    def _with_code(self, client: Client, uploaded: Callable[[int], None]) -> JobSpec:
        if self.code is None:
            return self.spec
        id_ = client.upload_snapshot(self.code, progress=uploaded) if self.code.files else None
        return self.spec.model_copy(update={"code": id_, "link_root": str(self.code.root)})


def from_file(path: Path, overrides: Sequence[str] = ()) -> Draft:
    """A draft from a YAML or JSON file; `overrides` are ``field.path=value`` with YAML values."""
    file = specfile.SpecFile.read(path)
    data = dict(file.data)
    for each in overrides:
        override(data, each)
    return Draft(data={"name": _name_of(path.resolve(), data), **data}, base=path.resolve().parent, file=file)


def _name_of(path: Path, data: Mapping[str, Any]) -> str:
    """A name for a job whose spec gives none: by its command, else by the file."""
    command = data.get("command")
    words = command.split() if isinstance(command, str) else command
    if isinstance(words, list) and words and all(isinstance(word, str) for word in words):
        return name_for(words, path.parent)
    return _name_part(path.stem) or "job"


def from_data(data: dict[str, Any]) -> Draft:
    """A draft from a spec's own fields."""
    return Draft(data=data, base=Path.cwd())


def from_words(words: Sequence[str], folder: Path, **fields: Any) -> Draft:
    """A draft from a command line; `fields` are fields of the spec, None meaning not given."""
    given = {name: value for name, value in fields.items() if value is not None}
    understood = by_hand.understand(words)
    gpus = {"gpus": understood.processes if understood and understood.processes else 1}
    given["resources"] = gpus | given.get("resources", {})
    data = {"launcher": Launcher.AUTO.value, "name": name_for(words, folder.resolve()), "command": list(words), **given}
    if "live" not in data:
        data.setdefault("code", ".")
    return Draft(data=data, base=folder.resolve())


def name_for(words: Sequence[str], folder: Path) -> str:
    """A job name from a command: the folder and the script or module, else the program."""
    understood = by_hand.understand(words)
    command = understood.command if understood else words
    found = commands.program(command) if commands.is_python(command) else None
    own = found.script or found.module if found else command[0] if "/" in command[0] else None
    stem, around = _name_part(own or command[0]), _name_part(folder.name) if own else ""
    return "-".join(filter(None, (around[: max(0, MAX_NAME - 1 - len(stem))], stem))) or "job"


def _name_part(path: str) -> str:
    stem = Path(path).stem if path.endswith((".py", ".sh")) else Path(path).name
    name = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in stem)
    return name.strip("._-")[:MAX_NAME]


def script_of(words: Sequence[str]) -> str | None:
    """The Python script that a command names; None where it runs a module or code from the command line."""
    return commands.program(words).script


def prepare(draft: Draft, environment: Mapping[str, str] | None = None) -> Prepared:
    """Checks a draft, takes the snapshot and fills in the active Python; nothing is sent.

    Raises SpecError and SnapshotError with the mend.
    """
    data = dict(draft.data)
    folder = _code_folder(data, draft.base)
    python = None if data.get("recipe") is not None else _fill_python(data, environment)
    spec = _validated(data, draft)
    _check_links(spec, folder)
    code = snapshot.take(folder, joined=spec.link) if folder else None
    warnings = list(code.notices) if code is not None else []
    reason = ""
    if spec.command is not None:
        choice = _choose(spec, _Command(spec=spec, words=spec.command, code=code), python)
        spec, reason, given = choice.applied(spec), choice.reason, spec
        warnings += [f"launcher: {spec.launcher.value}, because {reason}"] if reason else []
        command = _Command(spec=spec, words=choice.command, code=code)
        warnings += [*programs.check(given, choice, python, environment), *_check_command(command)]
    code = code if code and (code.files or spec.link) else None
    return Prepared(spec=spec, code=code, warnings=tuple(warnings), launcher_reason=reason)


def _choose(spec: JobSpec, command: "_Command", python: inspection.Python | None) -> launchers.Choice:
    choice = launchers.choose(spec, command.read, has_torch=python.has_torch if python else None)
    if choice.mismatch:
        raise SpecError(choice.mismatch)
    return choice


def override(data: dict[str, Any], text: str) -> None:
    """Sets ``field.path=value`` in a spec's data; raises SpecError."""
    path, equals, value = text.partition("=")
    if not equals or not path:
        raise SpecError(f"--set {text}: write field=value, such as resources.gpus=2")
    *parents, last = path.split(".")
    place = data
    for parent in parents:
        inner = place.get(parent)
        place[parent] = dict(inner) if isinstance(inner, dict) else {}
        place = place[parent]
    try:
        place[last] = specfile.value_of(path, value)
    except yaml.YAMLError as error:
        raise SpecError(f"--set {text}: {value!r} is not valid YAML") from error


def _code_folder(data: dict[str, Any], base: Path) -> Path | None:
    """The folder to upload, taken out of the data; a relative `live` becomes absolute."""
    live, code = data.get("live"), data.get("code")
    if isinstance(live, str) and live:
        data["live"] = str((base / Path(live).expanduser()).resolve())
    if live is not None or not isinstance(code, str) or SNAPSHOT_ID.fullmatch(code):
        return None
    del data["code"]
    return (base / Path(code).expanduser()).resolve()


def _fill_python(data: dict[str, Any], environment: Mapping[str, str] | None) -> inspection.Python | None:
    """The job's Python as far as it is on this machine; the active one where the spec names none."""
    given = data.get("python")
    if given is not None:
        return inspection.python_at(given) if isinstance(given, str) else None
    python = inspection.active_python(environment) if environment is not None else inspection.active_python()
    if python is not None:
        data["python"] = python.path
    return python


def _validated(data: dict[str, Any], draft: Draft) -> JobSpec:
    try:
        return JobSpec.model_validate(data)
    except ValidationError as error:
        if draft.file is not None:
            raise draft.file.explain(error) from error
        raise SpecError("\n".join(specfile.describe(each) for each in error.errors())) from error


def _check_links(spec: JobSpec, folder: Path | None) -> None:
    if spec.link and spec.live is not None:
        raise SpecError("link: live uses the folder as it is, with all that is in it: leave link out")
    if spec.link and folder is None and spec.link_root is None:
        raise SpecError("link: there is no code to join it to: add `code: .`")
    for path in spec.link:
        if folder is not None and not (folder / path).exists():
            raise SpecError(f"link: there is no {path} in {folder}: mend the path")
        if around := next((each for each in spec.link if path.startswith(f"{each}/")), None):
            raise SpecError(f"link: {path} lies in {around}, which is joined in whole: leave {path} out")


@dataclass(frozen=True, kw_only=True)
class _Command:
    spec: JobSpec
    words: tuple[str, ...]
    code: snapshot.Snapshot | None
    root: Path | None = field(init=False)

    def __post_init__(self) -> None:
        live = Path(self.spec.live) if self.spec.live else None
        object.__setattr__(self, "root", self.code.root if self.code else live)

    @property
    def program(self) -> str | None:
        """The file that the command starts, if it is one of the user's own."""
        if self.spec.launcher is not Launcher.NONE:
            return script_of(self.words)
        return self.words[0] if "/" in self.words[0] else None

    def travels(self, path: str) -> bool:
        """Whether a relative path will be there on the node."""
        clean = str(Path(path))
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
    return _program_warnings(command) + _source_warnings(command)


def _source_warnings(command: _Command) -> list[str]:
    program = launchers.read_program(command.spec, command.read)
    if program is None:
        return []
    ranked = command.spec.launcher.ranked
    return [
        *launchers.doubts(command.spec, facts.of(program)),
        *findings.in_script(program.entry, ranked=ranked),
        *replicas.notes(program),
    ]


def _program_warnings(command: _Command) -> list[str]:
    """What is wrong with the command's own file and arguments; raises SpecError where it cannot run at all."""
    program = command.program
    if program is None:
        return _argument_warnings(command)
    if Path(program).is_absolute():
        return _argument_warnings(command)
    if command.root is None:
        if command.spec.code is None:
            raise SpecError(f"command: {program} is a relative path, but there is no code: add `code: .` or live:")
        return []
    if not command.travels(program) or (command.code is None and not (command.root / program).exists()):
        raise SpecError(_missing(program, command.root))
    return _argument_warnings(command)


def _missing(path: str, root: Path) -> str:
    if not (root / path).exists():
        meant = programs.did_you_mean(path, (str(each.relative_to(root)) for each in (root / path).parent.glob("*")))
        return (
            f"command: there is no {path} in {root}{meant}: mend the path, or `code:`, the folder that it starts from"
        )
    why, joined = _left_out(root, Path(path))
    return f"command: {path} is in {root}, but {why}join it in with `link: [{joined}]` (yard run: --link {joined})"


def _left_out(root: Path, path: Path) -> tuple[str, Path]:
    """Why a file is not in the snapshot, with another mend if there is one; and what could be joined in instead."""
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
        if not value or path.is_absolute() or ".." in path.parts or command.travels(value):
            continue
        if (command.code.root / path).exists():
            found.append(
                f"{value} is not part of the snapshot: if the job reads it, add `link: [{path.parts[0]}]` "
                f"(yard run: --link {path.parts[0]})"
            )
    return found
