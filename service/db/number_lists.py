"""Conditions on long lists of numbers."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ARRAY, BigInteger, Boolean, ColumnElement, bindparam, func, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement


def one_of(column: Any, numbers: Sequence[int]) -> ColumnElement[bool]:
    """Return the condition that a column has one of these numbers.

    On PostgreSQL they are sent as one array: a variable for each costs more than to look at them. SQLite has to know
    how many they are: of a subquery's it expects so many that it reads a list in its order.
    """
    array = bindparam(None, list(numbers), type_=ARRAY(BigInteger))
    return _OneOf(column.in_(numbers), column.in_(select(func.unnest(array))))


class _OneOf(FunctionElement[bool]):
    """The same condition in the words of SQLite, then of PostgreSQL."""

    type = Boolean()
    inherit_cache = True

    def self_group(self, against: Any = None) -> "_OneOf":  # noqa: ARG002
        """Return the condition as it is: SQLAlchemy writes others as `... = 1`, for which SQLite takes no index."""
        return self


@compiles(_OneOf, "sqlite")
def _on_sqlite(element: _OneOf, compiler: SQLCompiler, **options: Any) -> str:
    condition, _ = element.clauses
    return compiler.process(condition, **options)


@compiles(_OneOf, "postgresql")
def _on_postgresql(element: _OneOf, compiler: SQLCompiler, **options: Any) -> str:
    _, condition = element.clauses
    return compiler.process(condition, **options)
