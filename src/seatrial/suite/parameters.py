"""Parameter spaces: lists, ranges and expressions; the full product unless zipped or excluded.

    space = ParameterSpace.of(test)
    list(space.bindings({"node.cores": 4}))     # [{"touch": "all", "threads": 1}, ...]

Parameters are bound in the order in which they are written. An expression may use facts and the
parameters above it.
"""

from collections.abc import Iterator, Mapping
from itertools import islice, repeat
from typing import Any

from msgspec import Struct

from seatrial.file_model import Scalar
from seatrial.suite.case_names import show
from seatrial.suite.expressions import Expression, ExpressionError, compile_expression
from seatrial.suite.model import TestFile

MAX_CASES = 1_000_000

Source = list[Scalar] | Expression


class ParameterAxis(Struct, frozen=True):
    """Parameters that advance together (mostly one), and the source of their values."""

    names: tuple[str, ...]
    sources: tuple[Source, ...]

    def rows(self, names: Mapping[str, Any]) -> list[dict[str, Scalar]]:
        """Return the distinct bindings of the axis. Raises ExpressionError for zipped lists of
        unequal length."""
        columns = list(map(_values, self.names, self.sources, repeat(names)))
        if len({len(column) for column in columns}) > 1:
            counts = [f"{n} has {len(c)}" for n, c in zip(self.names, columns, strict=True)]
            message = f"zipped parameters need equally many values: {', '.join(counts)}"
            raise ExpressionError(message, "zip")
        if len(columns) == 1:
            (name,), (values,) = self.names, columns
            return [{name: value} for value in {show(value): value for value in values}.values()]
        rows = zip(*columns, strict=True)
        distinct = {tuple(map(show, row)): row for row in rows}.values()
        return [dict(zip(self.names, row, strict=True)) for row in distinct]

    @property
    def depends_on(self) -> frozenset[str]:
        used = [source.names for source in self.sources if isinstance(source, Expression)]
        return frozenset().union(*used)


class ParameterSpace(Struct, frozen=True):
    """The axes in order, and the conditions that exclude a binding."""

    axes: tuple[ParameterAxis, ...]
    excluded: tuple[Expression, ...]

    @classmethod
    def of(
        cls, test: TestFile, settings: Mapping[str, list[Scalar]] | None = None
    ) -> "ParameterSpace":
        """Return the space of a checked test; ``settings`` replace the values of parameters."""
        settings = settings or {}
        sources: dict[str, Source] = {n: settings[n] for n in test.defaults if n in settings}
        for name, value in test.parameters.items():
            sources[name] = settings.get(name) or source_of(value)
        group_of = {name: tuple(group) for group in test.zip for name in group}
        axes: list[ParameterAxis] = []
        done: set[str] = set()
        for name in sources:
            if name not in done:
                group = group_of.get(name, (name,))
                axes.append(ParameterAxis(group, tuple(sources[member] for member in group)))
                done.update(group)
        return cls(tuple(axes), tuple(compile_expression(text) for text in test.exclude))

    def bindings(self, facts: Mapping[str, Any]) -> Iterator[dict[str, Scalar]]:
        """Yield every binding that is not excluded. Raises ExpressionError."""
        own = {name for axis in self.axes for name in axis.names}
        bound: list[dict[str, Scalar]] = [{}]
        for axis in self.axes:
            rows = None if axis.depends_on & own else axis.rows(facts)
            more = (
                {**binding, **row}
                for binding in bound
                for row in (axis.rows({**facts, **binding}) if rows is None else rows)
            )
            bound = list(islice(more, MAX_CASES + 1))
            if len(bound) > MAX_CASES:
                message = f"the parameters give more than {MAX_CASES} cases"
                raise ExpressionError(message, "parameters")
        if not self.excluded:
            return iter(bound)
        return (binding for binding in bound if not self._is_excluded(binding, facts))

    def _is_excluded(self, binding: dict[str, Scalar], facts: Mapping[str, Any]) -> bool:
        names = {**facts, **binding}
        return any(each.evaluate(names, "exclude", i) for i, each in enumerate(self.excluded))


def source_of(value: Scalar | list[Scalar]) -> Source:
    """Return the source of values: a list is literal, a number or truth value is one value, a text
    is an expression."""
    if isinstance(value, list):
        return value
    return compile_expression(value) if isinstance(value, str) else [value]


def _values(name: str, source: Source, names: Mapping[str, Any]) -> list[Scalar]:
    if isinstance(source, list):
        return source
    key = ("parameters", name)
    value = source.evaluate(names, *key)
    values = value if isinstance(value, list) else [value]
    if any(fault := fault_of_value(value) for value in values):
        raise ExpressionError(f"{source.text!r}: {fault}", *key)
    return values


def fault_of_value(value: object) -> str:
    """Return why a value cannot be a parameter's; "" if it can."""
    if not isinstance(value, Scalar):
        return "a value must be a number or a text; lists in lists are not known"
    if isinstance(value, str) and ("\0" in value or "\n" in value or "\r" in value):
        return f"{value!r} must be one line of text"
    return ""
