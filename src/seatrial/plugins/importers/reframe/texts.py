"""Texts of a test.yaml for tests of ReFrame: where cases differ, and checks and metrics.

    writer = CaseTexts(test)
    writer.expression("num_tasks", [4, 8])          # "4 if size == 'small' else 8"
    checks_of(sanity)                  # [{"matches": "^done", "in": "stdout"}]
    metric_of("triad", figure)         # {"find": "...", "reduce": "min", "in": "stdout"}

A parameter becomes a variable of the shell where that is provably the same; else a ``case`` of the
script or a condition of an expression chooses by the parameters.
"""

import itertools
import json
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from seatrial.escaping import shell_word
from seatrial.model.expressions import LONGEST_TEXT
from seatrial.model.file_model import Scalar
from seatrial.model.identifiers import show
from seatrial.plugins.importers.reframe.classes import NotProvable
from seatrial.plugins.importers.reframe.evaluate import (
    DEFAULTS,
    OF_MACHINE,
    STAGE,
    Deferred,
    Function,
    Launcher,
    OfMachine,
    ParameterOf,
    Piece,
    Stream,
    TracedFloat,
    TracedInt,
    TracedText,
    Undefined,
    is_of_machine,
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


# ---- checks --------------------------------------------------------------------------------------
#
# Make checks and metrics of a test.yaml of what ReFrame's sanity and performance functions return.
#
# checks_of(sanity)                  # [{"matches": "^done", "in": "stdout"}]
# metric_of("triad", figure)         # {"find": "^Triad: (\S+)", "reduce": "min", "in": "stdout"}
#
# ``extractsingle`` takes one of the matches and ``value`` all, so its pattern is tied to the start
# of the file: what is before the match is part of the pattern.


Keys = dict[str, Any]
_CHECKS = "checks of no known form"
_FIGURES = "figures of no known form"
_EXTRACTED = ("patt", "file", "tag", "conv", "item")  # arguments of sn.extractsingle
_COUNTED = ("findall", "extractall", "finditer", "extractiter")
_REDUCED = {"min": "min", "max": "max", "avg": "mean", "sum": "sum"}
_COMPARED = {sign: sign for sign in ("==", "<", "<=", ">", ">=")} | {
    "assert_eq": "==",
    "assert_lt": "<",
    "assert_le": "<=",
    "assert_gt": ">",
    "assert_ge": ">=",
}
_TURNED = {"==": "==", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_PLAIN_FILE = re.compile(r"[\w.+-][\w./+-]*", re.ASCII)
_STREAMS = ("stdout", "stderr")


def checks_of(sanity: object, plain: Collection[str] = ()) -> list[Keys]:
    """Return the checks that say what a sanity function does. Parameters of ``plain`` have values
    that mean themselves in a pattern: these stand in it by their names. Raises NotProvable."""
    if not isinstance(sanity, Deferred):
        if sanity:
            return []
        raise NotProvable(0, f"its sanity function returns {shown(sanity)}", _CHECKS)
    signs = {name: chr(_FIRST_SIGN + at) for at, name in enumerate(sorted(plain))}
    checks = list(_checks(_marked(sanity, signs)))
    for name, sign in signs.items():
        checks = [
            {
                key: value.replace(sign, f"${{{name}}}") if isinstance(value, str) else value
                for key, value in check.items()
            }
            for check in checks
        ]
    return checks


_FIRST_SIGN = 0xE000  # characters for private use stand for parameters while patterns are changed


def _marked(of: Any, signs: Mapping[str, str]) -> Any:
    """Return a value in which a sign stands for each parameter of a text."""
    match of:
        case Deferred(function=name, arguments=arguments, named=named):
            marked = tuple(_marked(each, signs) for each in arguments)
            return Deferred(name, marked, {key: _marked(v, signs) for key, v in named.items()})
        case list() | tuple():
            return [_marked(each, signs) for each in of]
        case TracedText():
            return _signed(of, signs)
    return of


def _signed(of: TracedText, signs: Mapping[str, str]) -> str:
    """Return a text with signs for its parameters, or as it is if one of these has no sign."""
    texts = [signs.get(p.name) if isinstance(p, ParameterOf) else p for p in of.pieces]
    return "".join(map(str, texts)) if all(isinstance(text, str) for text in texts) else of


def _checks(of: object) -> Iterator[Keys]:
    match of:
        case True | 1:
            return
        case Deferred(function="all" | "and_", arguments=arguments):
            for each in _flat(arguments):
                yield from _checks(each)
        case Deferred(function="assert_true" | "bool" | "evaluate", arguments=(inner, *_)):
            yield from _checks(inner)
        case Deferred(function="assert_found" | "assert_not_found" as name) as call:
            given = _named(call, ("patt", "filename"))
            yield _found(given["patt"], given["filename"], name == "assert_found")
        case Deferred(function="path_isfile" | "path_exists", arguments=(str() as path,)):
            yield {"file": _inner_path(path)}
        case Deferred(function="assert_bounded", arguments=(value, *limits)):
            yield _bounded(value, limits)
        case Deferred(function="assert_reference", arguments=(value, reference, *limits)):
            yield _bounded(value, _limits(reference, limits))
        case Deferred(function=name, arguments=(left, right, *_)) if name in _COMPARED:
            yield _compared(_COMPARED[name], left, right)
        case _:
            raise NotProvable(0, f"`{shown(of)}` is no check of a known form", _CHECKS)


def _flat(arguments: Sequence[object]) -> Iterator[object]:
    """Yield the checks in lists, and in ``sn.chain`` of these."""
    for each in arguments:
        match each:
            case list() | tuple():
                yield from _flat(each)
            case Deferred(function="chain", arguments=inner):
                yield from _flat(inner)
            case _:
                yield each


def _named(call: Deferred, names: Sequence[str]) -> Keys:
    """Return the arguments of a call by their names."""
    given = dict(zip(names, call.arguments, strict=False)) | call.named
    if not all(name in given for name in names[:2]):
        raise NotProvable(0, f"`{shown(call)}` has arguments of no known form", _CHECKS)
    return given


def _found(pattern: object, file: object, must_match: bool) -> Keys:
    written, name = _pattern(pattern), _file(file)
    if must_match:
        return {"matches": _without_names(written), "in": name}
    if re.escape(written) == written.replace(" ", "\\ "):
        return {"absent": written, "in": name}
    # nowhere: at the start of the file there is no way to a match
    inner = _without_names(_inner(written))
    return {"matches": rf"\A(?![\s\S]*?(?:{inner}))", "in": name}


def _compared(sign: str, left: object, right: object) -> Keys:
    if not isinstance(left, Deferred):
        left, right, sign = right, left, _TURNED[sign]
    match left, right:
        case Deferred(function="exitcode"), 0 if sign == "==":
            return {"exit_code": 0}
        case Deferred(function="count" | "len", arguments=(Deferred() as inner,)), int():
            return _counted(inner, sign, right)
    value = _number_of(left)
    bound = _bound(right)
    if value.distance_to is not None:
        return {**value.keys, **_near(value.distance_to, sign, bound, left)}
    return {**value.keys, **_limit(sign, bound)}


def _near(centre: Any, sign: str, distance: float | str, of: object) -> Keys:
    """Return the keys for a number whose distance to another one is limited."""
    if sign == "<=":
        return {"equals": centre, "tolerance": distance}
    if sign != "<":
        raise NotProvable(0, f"`{shown(of)}` with {sign}", _CHECKS)
    if isinstance(distance, str) or isinstance(centre, str):
        raise NotProvable(0, f"`{shown(of)}` < a parameter", _CHECKS)
    return {"at_least": _next(centre - distance, 1), "at_most": _next(centre + distance, -1)}


def _limit(sign: str, bound: float | str) -> Keys:
    """Return the keys for a number that is compared with a bound."""
    keys: dict[str, Keys] = {
        "==": {"equals": bound},
        "<=": {"at_most": bound},
        ">=": {"at_least": bound},
    }
    if sign in keys:
        return keys[sign]
    key, way = ("at_most", -1) if sign == "<" else ("at_least", 1)
    return {key: _next(bound, way)}


def _counted(inner: Deferred, sign: str, number: int) -> Keys:
    """Return a check that there are so many matches."""
    if inner.function not in _COUNTED:
        raise NotProvable(0, f"`{shown(inner)}` is not counted", _CHECKS)
    given = _named(inner, _EXTRACTED)
    one = _without_names(_inner(_without_groups(_pattern(given["patt"]))))
    least = {"==": number, ">=": number, ">": number + 1}.get(sign)
    most = {"==": number, "<=": number, "<": number - 1}.get(sign)
    parts = [r"\A", _times(one, least)] if least else [r"\A"]
    if most is not None:
        parts.append(f"(?!{_times(one, most + 1 - (least or 0))})")
    return {"matches": "".join(parts), "in": _file(given["file"])}


def _times(one: str, number: int) -> str:
    """Return a pattern of so many matches one behind another, with what is between them."""
    return f"(?>[\\s\\S]*?(?:{one}))" + (f"{{{number}}}" if number != 1 else "")


class _Number(NamedTuple):
    """A number in a file: the keys of a check that find it. Where its distance to a constant is
    asked for, that constant."""

    keys: Keys
    distance_to: Any = None


def _number_of(of: object) -> _Number:
    match of:
        case Deferred(function="extractsingle"):
            return _Number(_extracted(of))
        case Deferred(function="abs", arguments=(Deferred(function="-", arguments=parts),)):
            left, right = parts if isinstance(parts[0], Deferred) else reversed(parts)
            if not isinstance(right, Deferred) and not isinstance(left, int | float):
                return _Number(_number_of(left).keys, _bound(right))
        case Deferred(function="float" | "int", arguments=(inner,)):
            return _number_of(inner)
    raise NotProvable(0, f"`{shown(of)}` is no number of a known form", _CHECKS)


def _extracted(call: Deferred) -> Keys:
    given = _named(call, _EXTRACTED)
    if given.get("conv") not in (Function("float"), Function("int")):
        raise NotProvable(0, f"`{shown(call)}`: no float or int", _CHECKS)
    pattern = _pattern(given["patt"])
    one = with_one_group_as(pattern, given.get("tag", 0))
    tied = _tied(_inner(one), _inner(_without_groups(pattern)), given.get("item", 0))
    return {"value": _without_names(tied), "in": _file(given["file"])}


def _tied(one: str, plain: str, item: object) -> str:
    """Return a pattern with a single match: the match number ``item``."""
    if item == -1:
        return rf"\A[\s\S]*(?:{one})"
    if isinstance(item, bool) or not isinstance(item, int) or item < 0:
        raise NotProvable(0, f"match {item} of a pattern", _CHECKS)
    before = _times(plain, item) if item else ""
    return rf"\A{before}[\s\S]*?(?:{one})"


def _bounded(value: object, limits: Sequence[object]) -> Keys:
    keys = dict(_number_of(value).keys)
    for key, limit in zip(("at_least", "at_most"), limits, strict=False):
        if limit is not None:
            keys[key] = _bound(limit)
    return keys


def _limits(reference: object, fractions: Sequence[object]) -> list[float | None]:
    """Return the limits of ``sn.assert_reference``."""
    base = _bound(reference)
    if not isinstance(base, int | float):
        raise NotProvable(0, f"reference {shown(reference)} is no constant", _CHECKS)
    limits: list[float | None] = []
    for part in list(fractions[:2]):
        part = None if part is None else _bound(part)
        if isinstance(part, str):
            raise NotProvable(0, f"limit {part} is no constant", _CHECKS)
        limits.append(None if part is None else base + abs(base) * part)
    return limits


def _bound(of: object) -> float | str:
    """Return a bound of a check: a number, or the name of a parameter."""
    if isinstance(of, TracedInt | TracedFloat):
        return of.name
    if isinstance(of, bool) or not isinstance(of, int | float) or not math.isfinite(of):
        raise NotProvable(0, f"`{shown(of)}` is no bound", _CHECKS)
    return of


def _next(bound: float | str, way: int) -> float:
    if isinstance(bound, str):
        raise NotProvable(0, f"a strict bound of parameter {bound}", _CHECKS)
    return math.nextafter(bound, way * math.inf)


# ---- metrics -------------------------------------------------------------------------------------


def metric_of(figure: object) -> Keys:
    """Return the keys of a metric that find a figure. Raises NotProvable."""
    match figure:
        case Deferred(function="extractsingle") as call:
            given = _arguments(call)
            item, tag = given.get("item", 0), given.get("tag", 0)
            pattern = with_one_group_as(_constant(given["patt"]), tag)
            if item in (0, -1):
                reduce = "first" if item == 0 else "last"
                return {"find": pattern, "reduce": reduce, "in": _file(given["file"])}
            plain = _without_groups(_constant(given["patt"]))
            return {
                "find": _tied(_inner(pattern), _inner(plain), item),
                "in": _file(given["file"]),
            }
        case Deferred(function=name, arguments=(Deferred(function="extractall") as call,)) if (
            name in _REDUCED
        ):
            given = _arguments(call)
            pattern = with_one_group_as(_constant(given["patt"]), given.get("tag", 0))
            return {"find": pattern, "reduce": _REDUCED[name], "in": _file(given["file"])}
        case Deferred(function="float" | "evaluate" | "round", arguments=(inner, *_)):
            return metric_of(inner)
    raise NotProvable(0, f"`{shown(figure)}` is no figure of a known form", _FIGURES)


def _arguments(call: Deferred) -> Keys:
    given = _named(call, _EXTRACTED)
    if given.keys() - {*_EXTRACTED}:
        raise NotProvable(0, f"`{shown(call)}` has arguments of no known form", _FIGURES)
    if given.get("conv") not in (Function("float"), Function("int")):
        raise NotProvable(0, f"`{shown(call)}`: no float or int", _FIGURES)
    return given


def _constant(pattern: object) -> str:
    if not isinstance(pattern, str) or is_of_machine(pattern):
        raise NotProvable(0, f"`{shown(pattern)}` is no pattern that is a text", _FIGURES)
    return str(pattern)


# ---- pattern -------------------------------------------------------------------------------------
#
# Patterns with several groups, as ReFrame has them, become patterns with one.


def _file(of: object) -> str:
    """Return the file that a check or a metric reads."""
    if isinstance(of, Stream):
        if of.name not in _STREAMS:
            raise NotProvable(0, f"`self.{of.name}` is of a build", "checks of a build's output")
        return of.name
    if isinstance(of, str):
        return _inner_path(of)
    raise NotProvable(0, f"`{shown(of)}` is no file of a run", _CHECKS)


def _inner_path(of: str) -> str:
    path = str(of).removeprefix(f"${{{STAGE}}}/").removeprefix("./")
    if not _PLAIN_FILE.fullmatch(path) or ".." in path.split("/"):
        raise NotProvable(0, f"`{shown(of)}` is no file of the run directory", _CHECKS)
    return path


def _pattern(of: object) -> str:
    if not isinstance(of, str) or is_of_machine(of):
        raise NotProvable(0, f"`{shown(of)}` is no pattern that is a text", _CHECKS)
    try:
        re.compile(of, re.MULTILINE)
    except re.error as error:
        raise NotProvable(0, f"{of!r} is no pattern: {error}", _CHECKS) from None
    return str(of)


def _without_names(pattern: str) -> str:
    """Return a pattern that matches the same, and has no ``$`` before a letter or a brace."""
    return "".join(
        (r"\$" if in_class else "(?:$)")
        if piece == "$" and re.match(r"[A-Za-z_{]", after)
        else piece
        for piece, in_class, after in _scanned(pattern)
    )


def _inner(pattern: str) -> str:
    """Return a pattern that may stand within another one: flags at its start become a group's."""
    flags = re.match(r"\(\?([aimsux]+)\)", pattern)
    return f"(?{flags[1]}:{pattern[flags.end() :]})" if flags else pattern


def with_one_group_as(pattern: str, tag: object) -> str:
    """Return ``with_one_group`` of a pattern. Raises NotProvable."""
    try:
        return with_one_group(pattern, tag)
    except ValueError as error:
        raise NotProvable(0, str(error), "patterns of no known form") from None


def with_one_group(pattern: str, tag: object) -> str:
    """Return a pattern that matches the same, whose only group is the one that ``tag`` names: its
    number, its name, or 0 for the whole match. Raises ValueError."""
    try:
        compiled = re.compile(pattern, re.MULTILINE)
    except re.error as error:
        raise ValueError(f"{pattern!r} is no pattern: {error}") from None
    number = compiled.groupindex.get(tag, -1) if isinstance(tag, str) else tag
    if (
        isinstance(number, bool)
        or not isinstance(number, int)
        or not 0 <= number <= compiled.groups
    ):
        raise ValueError(f"{pattern!r} has no group {tag!r}")
    if re.search(r"\\[1-9]|\(\?P=|\(\?\(", pattern):
        raise ValueError(f"{pattern!r} refers to its groups")
    flags = re.match(r"\(\?[aimsux]+\)", pattern)
    start = flags.end() if flags else 0
    kept = "".join(_pieces(pattern[start:], number))
    return f"{pattern[:start]}({kept})" if number == 0 else pattern[:start] + kept


def _without_groups(pattern: str) -> str:
    """Return a pattern that matches the same, and has no group. Raises NotProvable."""
    with_one_group_as(pattern, 0)
    flags = re.match(r"\(\?[aimsux]+\)", pattern)
    start = flags.end() if flags else 0
    return pattern[:start] + "".join(_pieces(pattern[start:], -1))


def _scanned(pattern: str) -> Iterator[tuple[str, bool, str]]:
    """Yield the pieces of a pattern (escapes whole), whether each is in a class, and the rest."""
    at, in_class = 0, False
    while at < len(pattern):
        piece = pattern[at : at + 2] if pattern[at] == "\\" else pattern[at]
        at += len(piece)
        if in_class:
            in_class = piece != "]"
            yield piece, True, pattern[at:]
            continue
        if piece == "[":
            in_class = True
            rest = re.match(r"\^?\]?", pattern[at:])
            piece += rest[0] if rest else ""
            at += len(piece) - 1
        yield piece, False, pattern[at:]


def _pieces(pattern: str, number: int) -> list[str]:
    """Return the pieces of a pattern, with each group but one without a number."""
    out: list[str] = []
    group, named = 0, 0
    for piece, in_class, after in _scanned(pattern):
        if named:  # the name of a group, which is left out
            named -= len(piece)
            continue
        if piece == "(" and not in_class:
            name = re.match(r"\?P<\w+>", after)
            if name or not after.startswith("?"):
                group += 1
                named = len(name[0]) if name else 0
                piece = "(" if group == number else "(?:"
        out.append(piece)
    return out


def shown(of: object) -> str:
    """Return a deferred value as its source had it, not too long."""
    text = _shown(of)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _shown(of: object) -> str:
    match of:
        case Deferred(function=name, arguments=(left, right)) if not name[0].isalpha():
            return f"{_shown(left)} {name} {_shown(right)}"
        case Deferred(function=name, arguments=arguments):
            return f"{name}({', '.join(map(_shown, arguments))})"
        case Stream(name=name):
            return f"self.{name}"
        case Function(name=name) | ParameterOf(name=name):
            return name
        case str():
            return repr(str(of))
        case list() | tuple():
            return f"[{', '.join(map(_shown, of))}]"
    return repr(of)
