"""Descriptions of models' fields in JSON Schemas: the docstring below each field.

Pydantic's own ``use_attribute_docstrings`` reads the source of each class when it is defined, a third of the time that
`yard run` took to import. Only a schema needs descriptions, so they are read when one is made.
"""

import ast
import inspect
import sys
from collections.abc import Iterator, Mapping
from functools import cache

from pydantic import BaseModel, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema


class Described(BaseModel):
    """Base of models whose schema has the docstrings of their fields."""

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Return the schema, in which a field's docstring comes before what its type says, and its own words first."""
        made = handler(core_schema)
        properties = handler.resolve_ref_schema(made).get("properties", {})
        for name, words in docstrings(cls).items():
            field = cls.model_fields[name]
            shown = properties.get(field.alias, properties.get(name))
            if shown is not None and field.description is None:
                shown["description"] = words
        return made


def docstrings(kind: type[BaseModel]) -> dict[str, str]:
    """Return the docstrings of a model's fields, those that it inherits among them, by name."""
    found: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        if issubclass(each, Described):
            found |= _of_module(each.__module__).get(each.__name__, {})
    return {name: words for name, words in found.items() if name in kind.model_fields}


@cache
def _of_module(name: str) -> Mapping[str, Mapping[str, str]]:
    """Return the docstrings of fields in each class of a module."""
    body = ast.parse(inspect.getsource(sys.modules[name])).body
    return {each.name: dict(_pairs(each)) for each in body if isinstance(each, ast.ClassDef)}


def _pairs(kind: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for field, after in zip(kind.body, kind.body[1:], strict=False):
        match field, after:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(words))):
                yield name, inspect.cleandoc(words)
