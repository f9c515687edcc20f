"""Columns and tables: each column of the store is declared once, as a field of a row type.

    class Gap(Struct):
        trial: int
        first: int
        after: int | None = None

    GAPS = Table("gaps", columns_of(Gap), primary_key="trial, first")
    GAPS.statements()                     # CREATE TABLE gaps (trial BIGINT NOT NULL, ...)
    read(store, Gap, "gaps", "FROM gaps WHERE trial = ?", (1,))       # a list of Gap

The SQL type of a column follows from the type of its field. Whatever else there is to say of it
stands in the annotation of the field:

    test: Annotated[str, Column(source="tests.name", title="Test")]
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import Any, Literal, Protocol, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Struct

from seatrial.errors import StoreError

R = TypeVar("R", bound=Struct)

Kind = Literal["text", "number", "time", "seconds"]

SQL_TYPES: dict[type, str] = {
    int: "BIGINT",
    float: "DOUBLE PRECISION",
    str: "TEXT",
    bool: "BOOLEAN",
}
# The types that a database returns for a column of a type.
_RETURNED: dict[type, frozenset[type]] = {
    int: frozenset({int}),
    float: frozenset({float, int}),
    str: frozenset({str}),
    bool: frozenset({bool, int}),
}


class Column(Struct, frozen=True, kw_only=True):
    """A column of a row type, and of a table if the row type is stored."""

    #: Its name: that of the field.
    name: str = ""
    #: The type of its values in Python; ``object`` if there are several.
    python: type = str
    #: Whether it may be NULL (None).
    optional: bool = False
    #: The SQL expression of which queries read it; "": the column of that name.
    source: str = ""
    #: How its value is made from what the database returns; None: it is that.
    read: Callable[[Any], Any] | None = None
    #: Its type in SQL; "": the usual one of its type.
    sql: str = ""
    #: The attribute of a stored object that is its value; "": the one of its name.
    attribute: str = ""
    #: Its heading in lists; "": no list shows it.
    title: str = ""
    #: How lists show its values.
    kind: Kind = "text"
    #: Whether a terminal may break its text into several lines.
    fold: bool = False

    @property
    def definition(self) -> str:
        """Its line in CREATE TABLE."""
        null = "" if self.optional or self.sql.endswith("KEY") else " NOT NULL"
        return f"{self.name} {self.sql or SQL_TYPES[self.python]}{null}"

    def allows(self, kind: type) -> bool:
        """Return whether a database may return a value of this type for the column."""
        if self.read is not None:
            return True
        if kind is type(None):
            return self.optional
        return self.python not in _RETURNED or kind in _RETURNED[self.python]


@functools.cache
def columns_of(row: type[Struct]) -> tuple[Column, ...]:
    """Return the columns of a row type, in the order of its fields."""
    hints = get_type_hints(row, include_extras=True)
    return tuple(_column(name, hints[name]) for name in row.__struct_fields__)


def _column(name: str, hint: Any) -> Column:
    declared = Column()
    if hasattr(hint, "__metadata__"):
        declared = next((m for m in hint.__metadata__ if isinstance(m, Column)), declared)
        hint = hint.__origin__
    kinds = set(get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,))
    optional = type(None) in kinds
    kinds -= {type(None)}
    kind = kinds.pop() if len(kinds) == 1 else object
    return msgspec.structs.replace(
        declared, name=name, python=get_origin(kind) or kind, optional=optional
    )


# ---- tables -------------------------------------------------------------------------------


class Table:
    """A table of the store. A writer takes objects whose attributes are named as its columns."""

    def __init__(
        self,
        name: str,
        columns: Sequence[Column],
        *,
        primary_key: str = "",
        unique: str = "",
        indexes: Sequence[str] = (),
    ) -> None:
        """``primary_key`` is that of a table without a column ``id``; ``unique`` are the columns
        that no two rows share; ``indexes`` are statements."""
        self.name = name
        self.columns = tuple(columns)
        self.names = tuple(column.name for column in columns)
        self.key = primary_key or "id"
        self._constraints = [f"PRIMARY KEY ({primary_key})"] if primary_key else []
        self._constraints += [f"UNIQUE ({unique})"] if unique else []
        self._options = " WITHOUT ROWID" if primary_key else ""
        self._indexes = indexes
        self.attributes = tuple(column.attribute or column.name for column in columns)
        self.values: Callable[[Any], tuple[Any, ...]] = attrgetter(*self.attributes)

    def statements(self) -> Iterator[str]:
        """Yield the statements that make the table and its indexes."""
        parts = [*(column.definition for column in self.columns), *self._constraints]
        yield f"CREATE TABLE {self.name} ({', '.join(parts)}){self._options}"
        yield from self._indexes

    def insert_sql(self, mark: str, rows: int = 1) -> str:
        """Return the statement that inserts so many rows. ``mark`` is the database's parameter."""
        values = f"({', '.join([mark] * len(self.names))})"
        into = f"{self.name} ({', '.join(self.names)})"
        return f"INSERT INTO {into} VALUES {', '.join([values] * rows)}"

    def upsert_sql(self, mark: str) -> str:
        """Return the statement that inserts a row, or replaces the one with the same key."""
        keys = self.key.split(", ")
        changes = ", ".join(f"{name} = excluded.{name}" for name in self.names if name not in keys)
        return f"{self.insert_sql(mark)} ON CONFLICT ({self.key}) DO UPDATE SET {changes}"


# ---- queries ------------------------------------------------------------------------------


class Answers(Protocol):
    """What answers queries: a store, or a transaction that writes."""

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        """Return the rows of a query, as tuples."""


def read(
    answers: Answers, row: type[R], table: str, sql: str, parameters: Sequence[Any] = ()
) -> list[R]:
    """Return the rows of a query as objects of a row type. ``table`` has its columns that are
    declared without a source; ``sql`` is the query from FROM on. Raises StoreError for a value that
    no Seatrial writes: the store is damaged."""
    rows = answers.rows(f"SELECT {selected(row, table)} {sql}", parameters)
    return list(map(maker(row), rows))


@functools.cache
def selected(row: type[Struct], table: str) -> str:
    """Return the columns of a row type as a query selects them."""
    return ", ".join(column.source or f"{table}.{column.name}" for column in columns_of(row))


@functools.cache
def maker(row: type[R]) -> Callable[[Sequence[Any]], R]:
    """Return the function that makes an object of a row type from what ``selected`` selects."""
    columns = columns_of(row)
    conversions = [(i, column.read) for i, column in enumerate(columns) if column.read]
    sound: set[tuple[type, ...]] = set()

    def make(values: Sequence[Any]) -> R:
        kinds = tuple(map(type, values))
        if kinds not in sound:
            _require_sound(columns, kinds)
            sound.add(kinds)
        if conversions:
            values = list(values)
            for i, convert in conversions:
                values[i] = convert(values[i])
        return row(*values)

    return make


def _require_sound(columns: Sequence[Column], kinds: Sequence[type]) -> None:
    for column, kind in zip(columns, kinds, strict=True):
        if not column.allows(kind):
            raise StoreError(
                f"{column.name} of a row of the store is {kind.__name__}: it is damaged; run "
                "`seatrial store rebuild`"
            )
