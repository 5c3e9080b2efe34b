"""Writes ``openapi.json``. It refuses changes that break programs, unless they are meant: ``--breaking``."""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from service.api import openapi
from service.app import bare

FILE = Path(__file__).parents[1] / "openapi.json"

Schema = dict[str, Any]


def breaking(old: Schema, new: Schema) -> list[str]:
    """What a program that was written for the old description would stumble over in the new one."""
    asked = _asked_for(new)
    return [
        *_paths(old["paths"], new["paths"]),
        *_schemas(_components(old), _components(new), asked),
    ]


def _components(description: Schema) -> dict[str, Schema]:
    return dict(description.get("components", {}).get("schemas", {}))


def _paths(old: dict[str, Schema], new: dict[str, Schema]) -> Iterator[str]:
    for path, methods in old.items():
        for method, operation in methods.items():
            other = new.get(path, {}).get(method)
            if other is None:
                yield f"{method.upper()} {path} is gone"
            else:
                yield from _operation(f"{method.upper()} {path}", operation, other)


def _operation(name: str, old: Schema, new: Schema) -> Iterator[str]:
    before, after = _parameters(old), _parameters(new)
    yield from (f"{name}: parameter {key} is gone" for key in before if key not in after)
    yield from (
        f"{name}: parameter {key} is required now"
        for key, parameter in after.items()
        if parameter.get("required") and not before.get(key, {}).get("required")
    )
    for key in before.keys() & after.keys():
        yield from _schema(f"{name}: parameter {key}", before[key]["schema"], after[key]["schema"], asked=True)
    yield from (f"{name}: answer {status} is gone" for status in old["responses"] if status not in new["responses"])
    yield from (f"{name}: body {media} is no longer read" for media in _media(old) if media not in _media(new))


def _parameters(operation: Schema) -> dict[str, Schema]:
    return {f"{item['in']} {item['name']}": item for item in operation.get("parameters", [])}


def _media(operation: Schema) -> set[str]:
    return set(operation.get("requestBody", {}).get("content", {}))


def _schemas(old: dict[str, Schema], new: dict[str, Schema], asked: set[str]) -> Iterator[str]:
    for name, schema in old.items():
        if name not in new:
            yield f"{name} is gone"
        else:
            yield from _schema(name, schema, new[name], asked=name in asked)


def _schema(name: str, old: Schema, new: Schema, *, asked: bool) -> Iterator[str]:
    """`asked`: programs send it, so that a field newly required breaks them."""
    before, after = old.get("properties", {}), new.get("properties", {})
    yield from (f"{name}.{field} is gone" for field in before if field not in after)
    yield from (
        f"{name}: the value {value!r} is gone" for value in old.get("enum", []) if value not in new.get("enum", [value])
    )
    if asked:
        yield from (f"{name}.{field} is required now" for field in _required(new) - _required(old))
    else:
        yield from (f"{name}.{field} may be absent now" for field in _required(old) - _required(new))
    if old.get("type") != new.get("type") or old.get("$ref") != new.get("$ref"):
        yield f"{name} is of another type"
    for field in before.keys() & after.keys():
        yield from _schema(f"{name}.{field}", before[field], after[field], asked=asked)
    for key in ("items", "additionalProperties"):
        if isinstance(old.get(key), dict) and isinstance(new.get(key), dict):
            yield from _schema(f"{name}[]", old[key], new[key], asked=asked)


def _required(schema: Schema) -> set[str]:
    return set(schema.get("required", []))


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"].rpartition("/")[2]
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _references(item)


def _asked_for(description: Schema) -> set[str]:
    """Names of the schemas that requests are made of."""
    operations = [operation for methods in description["paths"].values() for operation in methods.values()]
    found: set[str] = set()
    waiting = [name for operation in operations for name in _references(operation.get("requestBody", {}))]
    components = _components(description)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += _references(components.get(name, {}))
    return found


def main() -> int:
    """Exit code: 1 for a breaking change that is not meant."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--breaking", action="store_true", help="write it although it breaks programs")
    meant = parser.parse_args().breaking
    text = openapi.text(bare())
    problems = breaking(json.loads(FILE.read_text()), json.loads(text)) if FILE.exists() else []
    for problem in problems:
        print(f"breaks programs: {problem}", file=sys.stderr)  # noqa: T201
    if problems and not meant:
        return 1
    FILE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
