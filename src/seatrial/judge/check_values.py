r"""What a check compares with in one case: the values of its expressions, parameters in its texts.

names = names_of(test, case, machine)        # {"node.cores": 64, "nodes": 2, "edge": 10, ...}
bounds_of(Check(value=r"^energy (\S+)", equals="want"), names).equals      # 202500.0
pattern_of("^energy $want", names)           # "^energy 202500"
"""

import math
import re
from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from seatrial.errors import suggest
from seatrial.hooks import provided
from seatrial.model.expressions import FACTS, ExpressionError, compile_expression
from seatrial.model.figures import shown
from seatrial.model.identifiers import show
from seatrial.model.machine import Machine
from seatrial.model.node_set import unfold
from seatrial.model.nodes import facts_of, groups_with
from seatrial.model.test import Case, Check, Test

LONGEST_REASON = 400  # characters of an error that a finding tells

CASE_NAMES = ("nodes", "tasks", "tasks_per_node", "threads")
"""What expressions of checks may use besides parameters and facts: the numbers of the case."""

BOUNDS = ("equals", "tolerance", "relative", "at_least", "at_most")
PATTERNS = ("matches", "value")

Names = Mapping[str, Any]
NO_NAMES: Names = MappingProxyType({})

_NAME = r"\$(?:\{([A-Za-z]\w*)\}|([A-Za-z]\w*))"
_IN_TEXT = re.compile(_NAME, re.ASCII)
# What is escaped or in brackets stands for itself. Elsewhere a dollar before a letter can match
# nothing, as it is the end of a line: so it is a name.
_IN_PATTERN = re.compile(rf"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|{_NAME}", re.ASCII | re.DOTALL)


class ValueBounds(NamedTuple):
    """The bounds of a value; None: there is none. ``allowed`` is the tolerance of ``equals``."""

    equals: float | None
    allowed: float
    at_least: float | None
    at_most: float | None


def names_of(test: Test, case: Case, machine: Machine) -> dict[str, Any]:
    """Return the names of a case's expressions, with their values. A parameter takes precedence
    over a number of the case; ``case.tasks`` and so on are always the number."""
    kinds = groups_with(machine, test.requires.features)
    if case.node:
        kinds = [kind for kind in kinds if case.node in unfold(kind.names)]
    return {
        **facts_of(machine, kinds).names,
        "toolchain.name": case.toolchain,
        **{name: getattr(case, name) for name in CASE_NAMES},
        **test.bound(case.parameters),
        **{f"case.{name}": getattr(case, name) for name in (*CASE_NAMES, "order", "place")},
    }


def bounds_of(check: Check, names: Names) -> ValueBounds:
    """Return the bounds of a value. Raises ExpressionError, with the key, where one is no number
    that can be a bound."""
    equals, _, _, at_least, at_most = (_bound(check, key, names) for key in BOUNDS)
    tolerance, relative = (_margin(check, key, names) for key in ("tolerance", "relative"))
    if at_least is not None and at_most is not None and at_least > at_most:
        raise ExpressionError(f"{at_least:.12g} is more than at_most, {at_most:.12g}", "at_least")
    return ValueBounds(equals, tolerance + relative * abs(equals or 0.0), at_least, at_most)


def _margin(check: Check, key: str, names: Names) -> float:
    number = _bound(check, key, names) or 0.0
    if number < 0:
        written = getattr(check, key)
        text = repr(written) if isinstance(written, str) else f"{written:g}"
        raise ExpressionError(f"{text} is less than 0", key)
    return number


def _bound(check: Check, key: str, names: Names) -> float | None:
    written = getattr(check, key)
    if written is None or isinstance(written, int | float):
        return written
    value = compile_expression(written).evaluate(names, key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ExpressionError(f"{written!r} gives {value!r:.60}, which is not a number", key)
    return float(value)


def text_of(text: str, names: Names) -> str:
    """Return a text with values in place of ``$name`` and ``${name}``. What is no name stays as it
    is."""

    def value(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        return show(names[name]) if name in names else match[0]

    return _IN_TEXT.sub(value, text) if "$" in text else text


def pattern_of(pattern: str, names: Names) -> str:
    """Return a regular expression with values, taken literally, in place of ``$name`` and
    ``${name}``. Raises ExpressionError for a name without a value."""

    def value(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        if name is None:
            return match[0]
        if name not in names:
            raise ExpressionError(f"{pattern!r}: {name} has no value here")
        return re.escape(show(names[name]))

    return _IN_PATTERN.sub(value, pattern) if "$" in pattern else pattern


# ---- what is wrong with them as they are written ------------------------------------------


def depends(check: Check) -> bool:
    """Return whether a check may differ from case to case."""
    return any(isinstance(getattr(check, key), str) for key in BOUNDS)


def faults_of_names(check: Check, parameters: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield the faults of a check's expressions and patterns: the key, and a message."""
    known = {*FACTS, *CASE_NAMES, *parameters}
    for key in BOUNDS:
        written = getattr(check, key)
        if isinstance(written, str):
            yield from ((key, fault) for fault in _faults_of_expression(written, known))
    known = {*CASE_NAMES, *parameters}
    for key in PATTERNS:
        for name in _names_in(getattr(check, key) or ""):
            if name not in known and name not in FACTS:
                remedy = f"{_remedy(name, known)}; write \\$ for a dollar"
                yield key, f"${name}: {name} is not defined{remedy}"


def _faults_of_expression(written: str, known: Collection[str]) -> list[str]:
    try:
        used = compile_expression(written).names
    except ExpressionError as error:
        return [str(error)]
    unknown = sorted(set(used).difference(known))
    return [f"{written!r}: {name} is not defined{_remedy(name, known)}" for name in unknown]


def _names_in(pattern: str) -> Iterator[str]:
    """Yield the names in a pattern, each as often as it has it."""
    for match in _IN_PATTERN.finditer(pattern):
        if name := match[1] or match[2]:
            yield name


def _remedy(name: str, known: Collection[str]) -> str:
    return "; " + (suggest(name, known) or f"there are {', '.join(sorted(known))}")


# ---- check faults --------------------------------------------------------------------------------
#
# The faults of a check of ``verify:`` as a person wrote it, before anything runs.
#
# faults_of_check(Check(contains="")) # [("contains", "is empty")]


LONGEST_NAME = 100  # of a check

KINDS = (
    "exit_code",
    "contains",
    "absent",
    "matches",
    "file",
    "value",
    "identical",
    "python",
    "script",
    "placement",
    "consistent",
    *(kind.name for kind in provided("seatrial_checks")),
)
_SHA256 = "[0-9a-fA-F]{64}"
_COMPANIONS = {**dict.fromkeys(BOUNDS, "value"), "sha256": "identical"}


def kinds_of(check: Check) -> list[str]:
    """Return the kinds of a check that are given; a valid one has exactly one."""
    return [kind for kind in KINDS if getattr(check, kind) is not None]


def faults_of_check(check: Check) -> list[tuple[str, str]]:
    """Return the faults of a check as a person wrote it, for the loader of suites: the key ("": the
    check as a whole), and a message."""
    kinds = kinds_of(check)
    if len(kinds) != 1:
        given = f"{' and '.join(kinds)} are given" if kinds else "none is given"
        return [("", f"a check has exactly one of {', '.join(KINDS)}; {given}")]
    return list(_faults_of_kind(check, kinds[0]))


def _faults_of_kind(check: Check, kind: str) -> Iterator[tuple[str, str]]:
    """Yield the faults of a check of one kind."""
    if len(check.name) > LONGEST_NAME or not check.name.isprintable():
        yield "name", f"must be one line of at most {LONGEST_NAME} characters"
    if kind not in ("exit_code", "placement") and not getattr(check, kind):
        yield kind, "is empty"
    if kind in PATTERNS:
        groups = 1 if kind == "value" else None
        if fault := fault_of_pattern(getattr(check, kind), groups):
            yield kind, fault
    yield from _faults_of_companions(check, kind)
    if kind == "identical" and not re.fullmatch(_SHA256, check.sha256 or "0" * 64):
        text = "must be 64 hexadecimal digits, as sha256sum prints them; without it, it is learned"
        yield "sha256", text


def _faults_of_companions(check: Check, kind: str) -> Iterator[tuple[str, str]]:
    """Yield the faults of the keys that belong to a kind, and of the bounds of a value."""
    for key, owner in _COMPANIONS.items():
        if kind != owner and getattr(check, key) not in (None, 0.0):
            yield key, f"belongs to {owner}:, which is not given"
    if kind == "value":
        yield from _faults_of_bounds(check)


def _faults_of_bounds(check: Check) -> Iterator[tuple[str, str]]:
    limits = [key for key in ("at_least", "at_most") if getattr(check, key) is not None]
    margins = [key for key in ("tolerance", "relative") if getattr(check, key) != 0.0]
    if check.equals is not None and limits:
        yield limits[0], "give equals with its tolerance, or at_least and at_most, not both"
    elif check.equals is None and not limits:
        yield "value", "needs equals: the number that it must be, or at_least or at_most"
    elif check.equals is None and margins:
        yield margins[0], "belongs to equals:, which is not given"
    elif not depends(check):
        yield from _faults_of_numbers(check)


def _faults_of_numbers(check: Check) -> Iterator[tuple[str, str]]:
    try:
        bounds_of(check, NO_NAMES)
    except ExpressionError as error:
        yield str(error.key[0]), str(error)


def fault_of_pattern(pattern: str, groups: int | None) -> str:
    """Return the fault of a regular expression that must have so many groups; "" if it has none."""
    try:
        has = re.compile(pattern, re.MULTILINE).groups
    except (re.error, OverflowError, RecursionError) as error:
        return f"{shown(pattern)} is not a regular expression: {error}"
    if groups is not None and has != groups:
        return (
            f"{shown(pattern)} has {has} groups and must have {groups}: put ( ) around the number "
            "and write (?: ) for other groups"
        )
    return ""
