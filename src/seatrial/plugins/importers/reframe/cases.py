"""Write what the cases of a test of ReFrame have in common, and where they differ.

writer = CaseTexts(test)
writer.expression("num_tasks", [4, 8])          # "4 if size == 'small' else 8"

A parameter becomes a variable of the shell where that is provably the same; else a ``case`` of the
script or a condition of an expression chooses by the parameters.
"""

import itertools
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

from seatrial.escaping import shell_word
from seatrial.model.expressions import LONGEST_TEXT
from seatrial.model.file_model import Scalar
from seatrial.model.identifiers import show
from seatrial.plugins.importers.reframe.classes import NotProvable
from seatrial.plugins.importers.reframe.evaluate import (
    DEFAULTS,
    OF_MACHINE,
    Deferred,
    Launcher,
    OfMachine,
    ParameterOf,
    Piece,
    TracedFloat,
    TracedInt,
    Undefined,
    pieces_of,
)
from seatrial.plugins.importers.reframe.tests import ReframeCase, ReframeTest

_PLAIN_VALUE = re.compile(r"[\w./+:,=-]+", re.ASCII)
_QUOTING = re.compile(r"['\"`\\#]")
_Texts = TypeVar("_Texts", str, tuple[str, ...])


class CaseTexts:
    """The values of the attributes of a test in its cases, as a test.yaml can have them."""

    def __init__(self, test: ReframeTest) -> None:
        self.test = test
        self.cases = [case for case in test.cases if not case.is_skipped]
        self.columns = {name: _labels(values) for name, values in test.parameters.items()}
        self.is_draft = False  # what has no value is left out, as in a test that is begun

    # ---- values ---------------------------------------------------------------------------

    def values(self, name: str) -> list[Any]:
        """Return the values of an attribute, one for each case. Raises NotProvable."""
        out = []
        for case in self.cases:
            out.append(self.value(case, name))
        return out

    def value(self, case: ReframeCase, name: str) -> Any:
        """Return the value of an attribute in a case. Raises NotProvable."""
        value = case.values.get(name, DEFAULTS.get(name))
        if isinstance(value, Undefined):
            if not self.is_draft:
                text = value.reason if name in value.reason else f"{name}: {value.reason}"
                raise NotProvable(0, text, value.kind)
            return DEFAULTS.get(name)
        return value

    def one(self, name: str, *kinds: type) -> Any:
        """Return the value of an attribute that all cases share, of one of these types or None.
        Raises NotProvable."""
        values = self.values(name)
        if any(value != values[0] for value in values):
            raise NotProvable(0, f"{name} differs between parameters", "values by parameters")
        if values[0] is not None and not isinstance(values[0], kinds):
            raise NotProvable(0, f"{name} is not of the usual type", "attributes of other types")
        return values[0]

    def words(self, case: ReframeCase, name: str) -> list[Any]:
        """Return the texts of a list, as the case has it."""
        value = self.value(case, name)
        if isinstance(value, str) or not isinstance(value, list | tuple | set | None):
            raise NotProvable(0, f"{name} is no list", "attributes of other types")
        return list(value or [])

    def shell(self, name: str, value: object) -> str:
        """Return a text as shell. ReFrame puts the values of parameters into it: a variable is the
        same where none of them has blanks or special characters, and the text has no quotes."""
        if isinstance(value, Deferred | dict | list | tuple | set | Launcher):
            raise NotProvable(0, f"{name} has no text", "attributes of other types")
        pieces = pieces_of(value)
        _require_variables(name, pieces)
        if not self._may_be_variables(pieces):
            return str(value)
        return "".join(
            f"${{{piece.name}}}" if isinstance(piece, ParameterOf) else str(piece)
            for piece in pieces
        )

    def _may_be_variables(self, pieces: Iterable[Piece]) -> bool:
        """Return whether variables of the shell are the same as the parameters of a text."""
        text = "".join(piece for piece in pieces if isinstance(piece, str))
        if _QUOTING.search(text):
            return False
        names = [piece.name for piece in pieces if isinstance(piece, ParameterOf)]
        return all(
            _PLAIN_VALUE.fullmatch(show(value)) for name in names for value in self.columns[name]
        )

    # ---- cases that differ ----------------------------------------------------------------

    def deciding(self, values: Sequence[object]) -> list[str]:
        """Return the parameters of which a value of each case depends, as few as are enough."""
        names = list(self.columns)
        for name in list(names):
            fewer = [each for each in names if each != name]
            known: dict[tuple[object, ...], object] = {}
            if all(
                known.setdefault(self.key(case, fewer), value) == value
                for case, value in zip(self.cases, values, strict=True)
            ):
                names = fewer
        return names

    def key(self, case: ReframeCase, names: Sequence[str]) -> tuple[Scalar, ...]:
        """Return the values of some parameters of a case, as the test.yaml has them."""
        key = []
        for name in names:
            at = self.test.parameters[name].index(case.parameters[name])
            key.append(self.columns[name][at])
        return tuple(key)

    def expression(self, name: str, values: Sequence[object]) -> str:
        """Return a number that may differ between cases as YAML: a number or an expression."""
        written = [_number(name, value) for value in values]
        if len(set(written)) == 1:
            return written[0] if re.fullmatch(r"[\w.]+", written[0]) else json.dumps(written[0])
        names = self.deciding(written)
        rows = self._keys_by_text(names, written)
        ordered = sorted(rows, key=lambda text: len(rows[text]))
        chain = ordered[-1]
        for text in reversed(ordered[:-1]):
            chain = f"{text} if {condition_of(names, rows[text])} else {chain}"
        if len(chain) > LONGEST_TEXT:
            raise NotProvable(0, f"{name} differs between parameters", "values by parameters")
        return json.dumps(chain)

    def _keys_by_text(
        self, names: Sequence[str], texts: Sequence[_Texts]
    ) -> dict[_Texts, list[tuple[Scalar, ...]]]:
        """Return for each text the keys of the cases that have it."""
        rows: dict[_Texts, list[tuple[Scalar, ...]]] = {}
        for case, text in zip(self.cases, texts, strict=True):
            keys = rows.setdefault(text, [])
            if (key := self.key(case, names)) not in keys:
                keys.append(key)
        return rows

    def script(self, scripts: Sequence[Sequence[str]], indent: str) -> Iterator[str]:
        """Yield the lines of a script, with a ``case`` where they differ between cases."""
        rows_of_lines = zip(*scripts, strict=False)
        same = [*itertools.takewhile(lambda lines: len(set(lines)) == 1, rows_of_lines)]
        yield from (f"{indent}{lines[0]}\n" for lines in same)
        rest = [tuple(script[len(same) :]) for script in scripts]
        if not any(rest):
            return
        names = self.deciding(rest)
        yield f'{indent}case "{"/".join(f"${{{name}}}" for name in names)}" in\n'
        for lines, keys in self._keys_by_text(names, rest).items():
            labels = dict.fromkeys(shell_word("/".join(map(show, key))) for key in keys)
            yield f"{indent}  {' | '.join(labels)})\n"
            yield from (f"{indent}    {line}\n" for line in lines)
            yield f"{indent}    ;;\n"
        yield f"{indent}esac\n"


def _number(name: str, value: object) -> str:
    """Return a number as an expression has it. Raises NotProvable."""
    if isinstance(value, OfMachine) and value.expression:
        return value.expression
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise NotProvable(0, f"{name} is no number", "attributes of other types")
    return value.name if isinstance(value, TracedInt | TracedFloat) else str(value)


def _require_variables(name: str, pieces: Iterable[Piece]) -> None:
    """Raise NotProvable for what only the machine knows, and no variable of scripts has."""
    for each in pieces:
        if isinstance(each, OfMachine) and not each.variable:
            text = f"{name}: `{each.said}` is known only on the machine"
            raise NotProvable(0, text, OF_MACHINE)


def condition_of(names: Sequence[str], rows: Sequence[Sequence[Scalar]]) -> str:
    """Return an expression that is true for these values of parameters."""
    if len(names) == 1 and len(rows) > 1:
        return f"{names[0]} in [{', '.join(_literal(row[0]) for row in rows)}]"
    terms = [
        " and ".join(f"{name} == {_literal(v)}" for name, v in zip(names, row, strict=True))
        for row in rows
    ]
    return " or ".join(f"({term})" for term in terms) if len(terms) > 1 else terms[0] or "true"


def _literal(value: Scalar) -> str:
    return repr(value) if isinstance(value, str) else show(value)


def _labels(values: Sequence[Any]) -> list[Scalar]:
    """Return the values of a parameter as a test.yaml can have them: those that are no numbers or
    texts get names of what is in them, or else numbers."""
    if all(isinstance(value, str | int | float) for value in values):
        return [_bare(value) for value in values]
    names: list[Scalar] = [
        re.sub(r"[^\w.+-]+", "_", "-".join(_leaves(value)), flags=re.ASCII)[:60] for value in values
    ]
    return names if len(set(names)) == len(names) and all(names) else list(range(len(values)))


def _bare(value: Any) -> Scalar:
    """Return a value that remembers no parameter."""
    for kind in (bool, int, float):
        if isinstance(value, kind):
            return kind(value)
    return str(value)


def _leaves(value: object) -> Iterator[str]:
    match value:
        case dict():
            yield from _leaves(list(value.values()))
        case list() | tuple() | set():
            for each in sorted(value, key=str) if isinstance(value, set) else value:
                yield from _leaves(each)
        case _:
            yield show(value) if isinstance(value, str | int | float) else "none"
