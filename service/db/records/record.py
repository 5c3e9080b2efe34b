"""Base of all records: the columns of a query, by name, each of the type that its field declares."""

import dataclasses
import types
from collections.abc import Callable, Hashable, Iterator
from enum import Enum
from functools import lru_cache
from typing import Any, Self, cast, get_args, get_origin, get_type_hints

from pydantic import BaseModel
from sqlalchemy import ColumnElement, Result, Row

from service.db.models import Base
from service.db.records.spec import StoredSpec, StoredSweep

Parser = Callable[[Any], Any]


class Record:
    """Base of the frozen dataclasses that rows are read into: a field for each column that the query must have.

    Columns without a field are left out. By the field's type, NULL staying None:

    - an enum, or a pydantic model: made from what is stored;
    - `StoredSpec`, `StoredSweep`: a view of the stored JSON;
    - a tuple: made from a JSON list, its items as above if they are pydantic models;
    - anything else: as the database gives it.
    """

    __slots__ = ()

    @classmethod
    def columns(cls, table: type[Base], *labelled: ColumnElement[Any]) -> list[Any]:
        """Return the columns to select for the record: those of the table, and the labelled ones in place of theirs."""
        own = {column.key: column for column in labelled}
        return [own[name] if name in own else getattr(table, name) for name in _names(cls)]

    @classmethod
    def each(cls, result: Result[Any]) -> Iterator[Self]:
        """Yield the rows of a result, in its order."""
        return map(cls._reader(result), result)

    @classmethod
    def all(cls, result: Result[Any]) -> list[Self]:
        """Return the rows of a result, in its order."""
        return list(cls.each(result))

    @classmethod
    def one(cls, result: Result[Any]) -> Self:
        """Return the only row; SQLAlchemy's `NoResultFound` and `MultipleResultsFound` where it is not."""
        return cls._reader(result)(result.one())

    @classmethod
    def first(cls, result: Result[Any]) -> Self | None:
        """Return the first row, or None."""
        read, row = cls._reader(result), result.first()
        return None if row is None else read(row)

    @classmethod
    def _reader(cls, result: Result[Any]) -> Callable[[Row[Any]], Self]:
        read: Callable[[Row[Any]], Self] = _reader(cast("Hashable", cls), tuple(result.keys()))
        return read


@lru_cache(maxsize=512)
def _reader(record: Any, columns: tuple[str, ...]) -> Callable[[Row[Any]], Any]:
    """Return what makes records of rows with these columns; a `TypeError` names the fields that have none."""
    hints, names = get_type_hints(record), _names(record)
    if missing := [name for name in names if name not in columns]:
        raise TypeError(f"{record.__name__} needs the columns {', '.join(missing)}")
    places = [columns.index(name) for name in names]
    parsers = [(at, parse) for at, name in enumerate(names) if (parse := _parser(hints[name])) is not None]

    def read(row: Row[Any]) -> Any:
        values = [row[place] for place in places]
        for at, parse in parsers:
            if values[at] is not None:
                values[at] = parse(values[at])
        return record(*values)

    return read


def _names(record: Any) -> list[str]:
    return [field.name for field in dataclasses.fields(record)]


def _parser(hint: Any) -> Parser | None:
    kind = _without_none(hint)
    if get_origin(kind) is tuple:
        return _tuple_of(_parser(get_args(kind)[0]))
    if not isinstance(kind, type):
        return None
    if issubclass(kind, BaseModel):
        return kind.model_validate
    return kind if issubclass(kind, Enum | StoredSpec | StoredSweep) else None


def _tuple_of(item: Parser | None) -> Parser:
    return tuple if item is None else lambda stored: tuple(map(item, stored))


def _without_none(hint: Any) -> Any:
    if get_origin(hint) is not types.UnionType:
        return hint
    return next(kind for kind in get_args(hint) if kind is not types.NoneType)
