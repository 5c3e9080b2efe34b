"""Settings as files (YAML or JSON) and as variables, read so that every error names the field or the variable."""

import difflib
import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import yaml
from pydantic import BaseModel, JsonValue, ValidationError
from pydantic_core import ErrorDetails

from torchyard import home
from torchyard.exceptions import TorchYardError
from torchyard.spec import error_messages

Model = TypeVar("Model", bound=BaseModel)
#: What the names of our variables begin with.
PREFIX = "TORCHYARD_"
#: Where the settings of a machine lie, unless ``TORCHYARD_HOME`` has its own or ``TORCHYARD_SETTINGS`` names them.
MACHINE_FILE: Final = Path("/etc/torchyard/settings.yaml")
#: Parts of a settings file, one for each program.
SECTIONS: Final = ("service", "worker")
#: Mark of a setting that counts at once when it is read anew (`json_schema_extra` of its field); others count from the
#: next start on.
AT_ONCE: Final[dict[str, JsonValue]] = {"at_once": True}


def read(path: Path, model: type[Model], problem: type[TorchYardError], shape: str) -> Model:
    """Load the settings in a file; fields that are absent have their defaults.

    Raises `problem` with the mend; `shape` says what such a file is made of.
    """
    data = _load(path, problem, shape)
    try:
        return model.model_validate(data)
    except ValidationError as error:
        wrong = (f"{path}: {'.'.join(map(str, e['loc']))}: {error_messages.message(e, model)}" for e in error.errors())
        raise problem("\n".join(wrong)) from error


def _load(file: Path, problem: type[Exception], shape: str) -> dict[Any, Any]:
    """Return the mapping in a YAML file, an empty one for an empty file. Raises `problem`."""
    try:
        data = yaml.safe_load(file.read_text())
    except OSError as error:
        raise problem(f"{file} cannot be read: {error.strerror}") from error
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise problem(f"{file} is not valid YAML: {error}") from error
    if not isinstance(data, dict | None):
        raise problem(f"{file}: {shape}")
    return data or {}


def path() -> Path | None:
    """Return the settings file of this process: ``TORCHYARD_SETTINGS``, the home's, or the machine's; None if none."""
    if named():
        return Path(named())
    return next((each for each in (home.root() / "settings.yaml", MACHINE_FILE) if each.is_file()), None)


def named() -> str:
    """Return the file that a variable names; empty if none does."""
    return os.environ.get("TORCHYARD_SETTINGS", "")


def from_environment(kind: type[Model], section: str) -> Model:
    """Load settings from variables and, where those are not set, from a section of the settings file.

    ValueError naming each that cannot be read, and each that there is not.
    """
    given = _section(section)
    wrong = [_unknown(section, name, kind.model_fields) for name in given if name not in kind.model_fields]
    ours = {name: value for name, value in given.items() if name in kind.model_fields and not is_set(name)}
    try:
        found = kind(**ours)
    except ValidationError as error:
        wrong += [_about_setting(each, section, ours) for each in error.errors()]
        raise ValueError("\n".join(wrong)) from error
    if wrong:
        raise ValueError("\n".join(wrong))
    return found


@dataclass(frozen=True)
class Changes:
    """Names of settings that differ."""

    at_once: list[str]
    """Those that count when they are read anew."""
    restart: list[str]
    """Those that count from the next start on."""


def sort_changes(kind: type[BaseModel], names: Collection[str]) -> Changes:
    """Return settings by when they count, each in the order of the class."""
    known = [name for name in kind.model_fields if name in names]
    return Changes(*([name for name in known if is_at_once(kind, name) is wanted] for wanted in (True, False)))


def is_at_once(kind: type[BaseModel], name: str) -> bool:
    """Return whether a setting counts at once when it is read anew."""
    return kind.model_fields[name].json_schema_extra == AT_ONCE


def changes(before: BaseModel, after: BaseModel) -> Changes:
    """Return which settings differ."""
    kind = type(before)
    return sort_changes(kind, {name for name in kind.model_fields if getattr(before, name) != getattr(after, name)})


def merged(before: Model, after: Model) -> Model:
    """Return settings with those of others that count at once."""
    return before.model_copy(update={name: getattr(after, name) for name in changes(before, after).at_once})


def _section(name: str) -> dict[str, Any]:
    """Return a section of the settings file, without what is empty there; ValueError for a file of another shape."""
    file = path()
    if file is None:
        return {}
    data = _load(file, ValueError, f"write the sections {' and '.join(SECTIONS)}, each with settings below it")
    if strange := [str(key) for key in data if key not in SECTIONS]:
        raise ValueError("\n".join(f"{file}: {key}: there is no such section{_meant_section(key)}" for key in strange))
    found = data.get(name) or {}
    if not isinstance(found, dict):
        raise ValueError(f"{file}: {name}: write settings below it, such as `port: 8765`")
    return {str(key): value for key, value in found.items() if value is not None}


def _meant_section(key: str) -> str:
    """Return which section was meant; for what looks like a setting, that it stands below one."""
    told = _meant(key, SECTIONS)
    return told if "did you mean" in told else f"{told}. A setting stands below its program's: `service: {{{key}: …}}`"


def is_set(name: str) -> bool:
    """Return whether a variable says a setting, and not the file."""
    return bool(os.environ.get(f"{PREFIX}{name}".upper()))


def _unknown(section: str, name: str, known: Any) -> str:
    return f"{path()}: {section}.{name}: there is no such setting{_meant(name, list(known))}"


def _meant(name: str, known: Any) -> str:
    close = difflib.get_close_matches(name.lower().removeprefix(PREFIX.lower()), known, n=1)
    return f"; did you mean {close[0]}?" if close else f": known are {', '.join(known)}"


def _about_setting(problem: ErrorDetails, section: str, in_file: dict[str, Any]) -> str:
    name = str(problem["loc"][0])
    variable = f"{path()}: {section}.{name}" if name in in_file else f"{PREFIX}{name}".upper()
    cause = problem.get("ctx", {}).get("error")
    return f"{variable}: {cause}" if cause else f"{variable}: {problem['input']!r}: {problem['msg']}"


def words(value: object) -> tuple[str, ...]:
    """Split words between commas, without repetitions; a list has them already."""
    if isinstance(value, list | tuple):
        value = ",".join(map(str, value))
    return tuple(dict.fromkeys(filter(None, map(str.strip, str(value).split(",")))))
