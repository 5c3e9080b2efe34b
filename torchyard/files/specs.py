"""Job specs as YAML or JSON files: read so that every error names file, line, column and field."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from torchyard.exceptions import SpecError
from torchyard.spec import JobSpec, error_messages

MAX_BYTES = 2**20
#: Fields whose scalars are words, as on a command line: ``[train.py, --lr, 0.1]`` means the text "0.1".
WORDS = ("command", "env")


class SpecFile:
    """A job spec's text, parsed, with the place of every field."""

    def __init__(self, text: str, name: str) -> None:
        self.name = name
        self._node = _compose(text, name)
        self.data = _plain(self._node, name)

    @classmethod
    def read(cls, path: Path) -> "SpecFile":
        """Read a file; raises SpecError when that is impossible."""
        try:
            if path.stat().st_size > MAX_BYTES:
                raise SpecError(f"{path} is larger than 1 MiB: that is no job spec")
            return cls(path.read_text(), str(path))
        except OSError as error:
            raise SpecError(f"{path} cannot be read: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise SpecError(f"{path} is not UTF-8 text: {error.reason} at byte {error.start}") from error

    def explain(self, error: ValidationError) -> SpecError:
        """The validation's errors with their places, one a line."""
        return SpecError("\n".join(f"{self.place(each['loc'])}{describe(each)}" for each in error.errors()))

    def place(self, path: Sequence[int | str]) -> str:
        """``file:line:column:`` of a field, or of the nearest thing around it."""
        mark = self._node.start_mark
        node: yaml.Node | None = self._node
        for part in path:
            key, node = _child(node, part)
            if key is None:
                break
            mark = key.start_mark
        return f"{self.name}:{mark.line + 1}:{mark.column + 1}: "


def describe(error: ErrorDetails) -> str:
    """One validation error: the field, what is wrong, and the mend."""
    field = ".".join(map(str, error["loc"]))
    message = error_messages.message(error, JobSpec)
    return f"{field}: {message}" if field else message


def _compose(text: str, name: str) -> yaml.MappingNode:
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"{name}:{mark.line + 1}:{mark.column + 1}" if mark else name
        raise SpecError(f"{place}: not valid YAML: {error.problem or error.context}") from error
    except yaml.YAMLError as error:
        raise SpecError(f"{name}: not valid YAML: {error}") from error
    if not isinstance(node, yaml.MappingNode):
        raise SpecError(f"{name}: a job spec is a mapping of fields, such as `command: [train.py]`")
    return node


def _plain(node: yaml.MappingNode, name: str) -> dict[str, Any]:
    _refuse_doubles(node, name)
    loader = yaml.SafeLoader("")
    try:
        data: dict[str, Any] = loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or node.start_mark
        raise SpecError(f"{name}:{mark.line + 1}:{mark.column + 1}: {error.problem}") from error
    for field in WORDS:
        _, value = _child(node, field)
        if value is not None:
            data[field] = words(value, data[field])
    return data


def value_of(path: str, text: str) -> Any:
    """The value that a person gave for a field by its path, as YAML; raises yaml.YAMLError."""
    value = yaml.safe_load(text)
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    field, _, inner = path.partition(".")
    if field not in WORDS:
        return value
    if node is None:
        return text if inner else value
    return _word(node, value) if inner else words(node, value)


def words(node: yaml.Node, value: Any) -> Any:
    """The value with its scalars as they are written: on a command line 0.10 is not 0.1."""
    if isinstance(node, yaml.SequenceNode) and isinstance(value, list):
        return [_word(each, plain) for each, plain in zip(node.value, value, strict=True)]
    if isinstance(node, yaml.MappingNode) and isinstance(value, dict):
        return {key.value: _word(each, value.get(key.value)) for key, each in node.value}
    return value


def _word(node: yaml.Node, value: Any) -> Any:
    return node.value if isinstance(node, yaml.ScalarNode) and value is not None else value


def _refuse_doubles(node: yaml.Node, name: str) -> None:
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if key.value in seen:
                mark = key.start_mark
                raise SpecError(f"{name}:{mark.line + 1}:{mark.column + 1}: {key.value}: given twice: keep one of them")
            seen.add(str(key.value))
            _refuse_doubles(value, name)
    elif isinstance(node, yaml.SequenceNode):
        for value in node.value:
            _refuse_doubles(value, name)


def _child(node: yaml.Node | None, part: int | str) -> tuple[yaml.Node | None, yaml.Node | None]:
    """The node that names a part of a path, and the one that holds its value."""
    if isinstance(node, yaml.MappingNode):
        return next(((key, value) for key, value in node.value if key.value == part), (None, None))
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        return node.value[part], node.value[part]
    return None, None
