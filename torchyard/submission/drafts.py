"""Submissions made ready from a YAML file or the words of ``yard run``: spec, code, Python, warnings."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from torchyard import api, presence, snapshot
from torchyard.analysis import analyse, commands, interpreters, launch_commands
from torchyard.client.client import Client
from torchyard.exceptions import SpecError
from torchyard.files import specs
from torchyard.spec import ALL, MAX_NAME, SNAPSHOT_ID, JobSpec, Launcher


@dataclass(frozen=True, kw_only=True)
class Draft:
    """A spec as a person wrote it; `code` may be a folder."""

    data: dict[str, Any]
    base: Path
    """Where relative paths start: the folder of the file, or the working directory."""
    file: specs.SpecFile | None = None


@dataclass(frozen=True, kw_only=True)
class PreparedSubmission:
    """A spec that is ready but for its code, which is still to be uploaded."""

    spec: JobSpec
    code: snapshot.CodeSnapshot | None
    warnings: tuple[str, ...] = ()
    launcher_reason: str = ""
    """Why `launcher: auto` became what it is."""

    def submit(self, client: Client, *, uploaded: Callable[[int], None] = lambda _bytes: None) -> api.Job:
        """Upload the code and submit the job; `uploaded` gets the bytes of each file."""
        spec = self._with_code(client, uploaded)
        return client.submit(spec, launcher_reason=self.launcher_reason, analysed=True)

    def submit_sweep(self, client: Client, *, uploaded: Callable[[int], None] = lambda _bytes: None) -> api.Group:
        """The same for a spec with `sweep`."""
        spec = self._with_code(client, uploaded)
        return client.submit_sweep(spec, launcher_reason=self.launcher_reason, analysed=True)

    def _with_code(self, client: Client, uploaded: Callable[[int], None]) -> JobSpec:
        if self.code is None:
            return self.spec
        id_ = client.upload_snapshot(self.code, progress=uploaded) if self.code.files else None
        return self.spec.model_copy(update={"code": id_})


def from_file(path: Path, overrides: Sequence[str] = ()) -> Draft:
    """A draft from a YAML or JSON file; `overrides` are ``field.path=value`` with YAML values."""
    file = specs.SpecFile.read(path)
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
    understood = launch_commands.understand(words)
    gpus = {"gpus": understood.processes if understood and understood.processes else 1}
    given["resources"] = gpus | given.get("resources", {})
    data = {"launcher": Launcher.AUTO.value, "name": name_for(words, folder.resolve()), "command": list(words), **given}
    if "live" not in data:
        data.setdefault("code", ".")
    return Draft(data=data, base=folder.resolve())


def name_for(words: Sequence[str], folder: Path) -> str:
    """A job name from a command: the folder and the script or module, else the program."""
    understood = launch_commands.understand(words)
    command = understood.command if understood else words
    found = commands.program(command) if commands.is_python(command) else None
    own = found.script or found.module if found else command[0] if "/" in command[0] else None
    stem, around = _name_part(own or command[0]), _name_part(folder.name) if own else ""
    return "-".join(filter(None, (around[: max(0, MAX_NAME - 1 - len(stem))], stem))) or "job"


def _name_part(path: str) -> str:
    stem = Path(path).stem if path.endswith((".py", ".sh")) else Path(path).name
    name = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in stem)
    return name.strip("._-")[:MAX_NAME]


def prepare(draft: Draft, environment: Mapping[str, str] | None = None) -> PreparedSubmission:
    """Check a draft, take the snapshot and fill in the active Python; nothing is sent.

    Raises SpecError and SnapshotError with the mend.
    """
    data = dict(draft.data)
    folder = _code_folder(data, draft.base)
    python = None if data.get("recipe") is not None else _fill_python(data, environment)
    spec = _validated(data, draft)
    _check_links(spec, folder)
    code = snapshot.take(folder, joined=spec.link) if folder else None
    found = analyse.analyse(spec, code=code, python=python, environment=environment)
    told = list(() if code is None else code.notices)
    if found.launcher_reason:
        told.append(f"launcher: {found.spec.launcher.value}, because {found.launcher_reason}")
    code = code if code and (code.files or spec.link) else None
    return PreparedSubmission(
        spec=found.spec if code is None else found.spec.model_copy(update={"link_root": str(code.root)}),
        code=code,
        warnings=(*told, *found.warnings),
        launcher_reason=found.launcher_reason,
    )


def wants_all(draft: Draft) -> bool:
    """Return whether the box that it is submitted to says how many GPUs the job gets."""
    resources = draft.data.get("resources")
    return isinstance(resources, dict) and resources.get("gpus") == ALL


def override(data: dict[str, Any], text: str) -> None:
    """Set ``field.path=value`` in a spec's data; raises SpecError."""
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
        place[last] = specs.value_of(path, value)
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


def _fill_python(data: dict[str, Any], environment: Mapping[str, str] | None) -> interpreters.Python | None:
    """The job's Python as far as it is on this machine; the active one where the spec names none."""
    given = data.get("python")
    if given is not None:
        return interpreters.python_at(given) if isinstance(given, str) else None
    python = interpreters.active_python(environment) if environment is not None else interpreters.active_python()
    if python is not None:
        data["python"] = python.path
    return python


def _validated(data: dict[str, Any], draft: Draft) -> JobSpec:
    try:
        return JobSpec.model_validate(data)
    except ValidationError as error:
        if draft.file is not None:
            raise draft.file.explain(error) from error
        raise SpecError("\n".join(specs.describe(each) for each in error.errors())) from error


def _check_links(spec: JobSpec, folder: Path | None) -> None:
    if spec.link and spec.live is not None:
        raise SpecError("link: live uses the folder as it is, with all that is in it: leave link out")
    if spec.link and folder is None and spec.link_root is None:
        raise SpecError("link: there is no code to join it to: add `code: .`")
    for path in spec.link:
        if folder is not None and not presence.exists(folder / path):
            raise SpecError(f"link: there is no {path} in {folder}: mend the path")
        if around := next((each for each in spec.link if path.startswith(f"{each}/")), None):
            raise SpecError(f"link: {path} lies in {around}, which is joined in whole: leave {path} out")
