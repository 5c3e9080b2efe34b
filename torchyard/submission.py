"""From a YAML file, or the words of ``yard run``, to a spec that the service takes: code, Python, warnings."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from torchyard import api, findings, inspection, snapshot, specfile
from torchyard.client import Client
from torchyard.exceptions import SpecError
from torchyard.spec import SNAPSHOT_ID, JobSpec, Launcher

LAUNCHERS_BY_HAND = ("torchrun", "accelerate", "deepspeed", "horovodrun", "mpirun")
LAUNCHER_MODULES = ("torch.distributed.launch", "torch.distributed.run")
_INSPECTED_BYTES = 2**20


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

    def submit(self, client: Client, *, uploaded: Callable[[int], None] = lambda _bytes: None) -> api.Job:
        """Uploads the code and submits the job; `uploaded` gets the bytes of each file."""
        return client.submit(self._with_code(client, uploaded))

    def submit_sweep(self, client: Client, *, uploaded: Callable[[int], None] = lambda _bytes: None) -> api.Group:
        """The same for a spec with `sweep`."""
        return client.submit_sweep(self._with_code(client, uploaded))

    def _with_code(self, client: Client, uploaded: Callable[[int], None]) -> JobSpec:
        if self.code is None:
            return self.spec
        id_ = client.upload_snapshot(self.code, progress=uploaded)
        return self.spec.model_copy(update={"code": id_, "link_root": str(self.code.root)})


def from_file(path: Path, overrides: Sequence[str] = ()) -> Draft:
    """A draft from a YAML or JSON file; `overrides` are ``field.path=value`` with YAML values."""
    file = specfile.SpecFile.read(path)
    data = dict(file.data)
    for each in overrides:
        override(data, each)
    return Draft(data=data, base=path.resolve().parent, file=file)


def from_data(data: dict[str, Any]) -> Draft:
    """A draft from a spec's own fields."""
    return Draft(data=data, base=Path.cwd())


def from_words(words: Sequence[str], folder: Path, **fields: Any) -> Draft:
    """A draft from a command line; `fields` are fields of the spec, None meaning not given."""
    given = {name: value for name, value in fields.items() if value is not None}
    gpus = given.get("resources", {}).get("gpus", 1)
    data = {"launcher": launcher_for(words, gpus).value, "name": name_for(words), "command": list(words), **given}
    if "live" not in data:
        data.setdefault("code", ".")
    return Draft(data=data, base=folder.resolve())


def launcher_for(words: Sequence[str], gpus: int) -> Launcher:
    """How a command line is started: Python scripts on GPUs under torchrun, other programs as they are."""
    first = Path(words[0]).name
    if (by_hand := launcher_by_hand(words)) is not None:
        raise SpecError(
            f"leave {by_hand} out: the queue starts one process per GPU itself (or say --launcher none; where scripts "
            "take --local_rank, say --launcher launch)"
        )
    if not (inspection.PYTHON_WORD.fullmatch(first) or first.endswith(".py")):
        return Launcher.NONE
    return Launcher.TORCHRUN if gpus > 0 else Launcher.PYTHON


def launcher_by_hand(words: Sequence[str]) -> str | None:
    """The launcher that a command line starts by itself, if it does."""
    first = Path(words[0]).name
    if first in LAUNCHERS_BY_HAND:
        return first
    module = (
        words[2] if inspection.PYTHON_WORD.fullmatch(first) and list(words[1:2]) == ["-m"] and len(words) > 2 else None
    )
    return f"-m {module}" if module in LAUNCHER_MODULES else None


def name_for(words: Sequence[str]) -> str:
    """A job name from a command: the script's stem, else the program's."""
    named = script_of(words) or words[0]
    stem = Path(named).stem if named.endswith((".py", ".sh")) else Path(named).name
    name = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in stem)
    return name.lstrip("._-")[:63] or "job"


def script_of(words: Sequence[str]) -> str | None:
    """The Python script that a command names; None where it runs a module or code from the command line."""
    rest = words[1:] if inspection.PYTHON_WORD.fullmatch(Path(words[0]).name) else words
    return rest[0] if rest and not rest[0].startswith("-") else None


def prepare(draft: Draft, environment: Mapping[str, str] | None = None) -> Prepared:
    """Checks a draft, takes the snapshot and fills in the active Python; nothing is sent.

    Raises SpecError and SnapshotError with the mend.
    """
    data = dict(draft.data)
    folder = _code_folder(data, draft.base)
    warnings: list[str] = []
    if data.get("recipe") is None and data.get("python") is None:
        _fill_python(data, warnings, environment)
    spec = _validated(data, draft)
    code = snapshot.take(folder) if folder else None
    if code is not None:
        warnings += code.notices
        _check_links(spec, code)
    if spec.command is not None:
        warnings += _check_command(_Command(spec=spec, words=spec.command, code=code))
    return Prepared(spec=spec, code=code if code and code.files else None, warnings=tuple(warnings))


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
        place[last] = yaml.safe_load(value)
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


def _fill_python(data: dict[str, Any], warnings: list[str], environment: Mapping[str, str] | None) -> None:
    python = inspection.active_python(environment) if environment is not None else inspection.active_python()
    if python is None:
        return
    data["python"] = python.path
    if not python.has_torch and data.get("launcher", Launcher.TORCHRUN) in (Launcher.TORCHRUN, Launcher.LAUNCH):
        warnings.append(f"{python.path} has no torch: activate the environment of the job, or name it under python:")


def _validated(data: dict[str, Any], draft: Draft) -> JobSpec:
    try:
        return JobSpec.model_validate(data)
    except ValidationError as error:
        if draft.file is not None:
            raise draft.file.explain(error) from error
        raise SpecError("\n".join(specfile.describe(each) for each in error.errors())) from error


def _check_links(spec: JobSpec, code: snapshot.Snapshot) -> None:
    for path in spec.link:
        if not (code.root / path).is_dir():
            raise SpecError(f"link: {path!r} is not a folder in {code.root}")


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


def _check_command(command: _Command) -> list[str]:
    return _launcher_warnings(command) + _program_warnings(command)


def _launcher_warnings(command: _Command) -> list[str]:
    by_hand = launcher_by_hand(command.words) if command.spec.launcher.ranked else None
    if by_hand is None:
        return []
    return [f"command: leave {by_hand} out, the queue starts one process per GPU itself (or say launcher: none)"]


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
    ranked = command.spec.launcher.ranked
    return _script_warnings(command.root / program, program, ranked) + _argument_warnings(command)


def _missing(path: str, root: Path) -> str:
    if not (root / path).exists():
        return f"command: there is no {path} in {root}: mend the path, or `code:`, the folder that it starts from"
    return (
        f"command: {path} is in {root}, but an ignore file keeps it out of the snapshot: bring it back in .yardignore "
        f"(`!{path}`), or join its folder in with `link: [{Path(path).parts[0]}]`"
    )


def _script_warnings(path: Path, name: str, ranked: bool) -> list[str]:
    if path.suffix != ".py" or path.stat().st_size > _INSPECTED_BYTES:
        return []
    return findings.in_script(name, path.read_text(errors="replace"), ranked=ranked)


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
