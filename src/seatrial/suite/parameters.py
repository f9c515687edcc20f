"""Parameter spaces: lists, ranges and expressions; the full product unless zipped or excluded.

    space = ParameterSpace.of(test)
    list(space.bindings({"node.cores": 4}))     # [{"touch": "all", "threads": 1}, ...]

Parameters are bound in the order in which they are written; an expression may use facts and the
parameters above it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from seatrial.suite.expressions import Expression, ExpressionError, compile_expression
from seatrial.suite.model import Scalar, TestFile

MOST_CASES = 1_000_000

Source = list[Scalar] | Expression


@dataclass(frozen=True, slots=True)
class Axis:
    """Parameters that advance together (mostly one), and where their values come from."""

    names: tuple[str, ...]
    sources: tuple[Source, ...]

    def rows(self, names: Mapping[str, Any]) -> list[tuple[Scalar, ...]]:
        """The values of the axis. Raises ExpressionError for zipped lists of unequal length."""
        columns = [_values(source, names) for source in self.sources]
        lengths = {len(column) for column in columns}
        if len(lengths) > 1:
            counts = ", ".join(
                f"{n} has {len(c)}" for n, c in zip(self.names, columns, strict=True)
            )
            raise ExpressionError(f"zipped parameters need equally many values: {counts}")
        return list(zip(*columns, strict=True))

    @property
    def depends_on(self) -> frozenset[str]:
        used = [source.names for source in self.sources if isinstance(source, Expression)]
        return frozenset().union(*used)


@dataclass(frozen=True, slots=True)
class ParameterSpace:
    """The axes in order and the conditions that leave a binding out."""

    axes: tuple[Axis, ...]
    excluded: tuple[Expression, ...]

    @classmethod
    def of(
        cls, test: TestFile, settings: Mapping[str, list[Scalar]] | None = None
    ) -> ParameterSpace:
        """The space of a checked test; ``settings`` replace the values of parameters."""
        settings = settings or {}
        sources = {n: settings.get(n) or source_of(value) for n, value in test.parameters.items()}
        group_of = {name: tuple(group) for group in test.zip for name in group}
        axes: list[Axis] = []
        done: set[str] = set()
        for name in sources:
            if name not in done:
                group = group_of.get(name, (name,))
                axes.append(Axis(group, tuple(sources[member] for member in group)))
                done.update(group)
        return cls(tuple(axes), tuple(compile_expression(text) for text in test.exclude))

    def bindings(self, facts: Mapping[str, Any]) -> Iterator[dict[str, Scalar]]:
        """Every binding that is not excluded. Raises ExpressionError."""
        own = {name for axis in self.axes for name in axis.names}
        fixed = [None if axis.depends_on & own else axis.rows(facts) for axis in self.axes]
        names = dict(facts)
        for number, binding in enumerate(self._bind(0, {}, names, fixed)):
            if number >= MOST_CASES:
                raise ExpressionError(f"the parameters give more than {MOST_CASES} cases")
            if self.excluded:
                names.update(binding)
                if any(condition.evaluate(names) for condition in self.excluded):
                    continue
            yield binding

    def _bind(
        self,
        index: int,
        binding: dict[str, Scalar],
        names: dict[str, Any],
        fixed: list[list[tuple[Scalar, ...]] | None],
    ) -> Iterator[dict[str, Scalar]]:
        if index == len(self.axes):
            yield dict(binding)
            return
        axis, rows = self.axes[index], fixed[index]
        for row in axis.rows(names) if rows is None else rows:
            for name, value in zip(axis.names, row, strict=True):
                binding[name] = names[name] = value
            yield from self._bind(index + 1, binding, names, fixed)


def source_of(value: Scalar | list[Scalar]) -> Source:
    """A list is literal; a number or truth value is one value; a text is an expression."""
    if isinstance(value, list):
        return value
    return compile_expression(value) if isinstance(value, str) else [value]


def _values(source: Source, names: Mapping[str, Any]) -> list[Scalar]:
    if isinstance(source, list):
        return source
    value = source.evaluate(names)
    return value if isinstance(value, list) else [value]
