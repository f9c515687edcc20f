"""The faults of a check of ``verify:`` as a person wrote it, before anything runs.

faults_of_check(Check(contains=""))      # [("contains", "is empty")]
"""

import re
from collections.abc import Iterator

from seatrial.hooks import each
from seatrial.suite.check_spec import Check
from seatrial.suite.expressions import ExpressionError
from seatrial.verify import check_values
from seatrial.verify.figures import shown

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
    *(kind.name for kind in each("seatrial_checks")),
)
_COMPANIONS = {**dict.fromkeys(check_values.BOUNDS, "value"), "sha256": "identical"}


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
    if kind in check_values.PATTERNS:
        groups = 1 if kind == "value" else None
        if fault := fault_of_pattern(getattr(check, kind), groups):
            yield kind, fault
    yield from _faults_of_companions(check, kind)
    if kind == "identical" and not re.fullmatch("[0-9a-fA-F]{64}", check.sha256 or "0" * 64):
        text = "must be 64 hexadecimal digits, as sha256sum prints them; without it, it is learned"
        yield "sha256", text


def _faults_of_companions(check: Check, kind: str) -> Iterator[tuple[str, str]]:
    """Yield the faults of the keys that belong to a kind, and of the bounds of a value."""
    for key, owner in _COMPANIONS.items():
        if getattr(check, key) not in (None, 0.0) and kind != owner:
            yield key, f"belongs to {owner}:, which is not given"
    if kind == "value":
        yield from _faults_of_bounds(check)


def _faults_of_bounds(check: Check) -> list[tuple[str, str]]:
    limits = [key for key in ("at_least", "at_most") if getattr(check, key) is not None]
    if check.equals is None and not limits:
        text = "needs equals: the number that it must be, or at_least or at_most"
        return [("value", text)]
    if check.equals is not None and limits:
        return [(limits[0], "give equals with its tolerance, or at_least and at_most, not both")]
    named = [key for key in ("tolerance", "relative") if getattr(check, key) != 0.0]
    if check.equals is None and named:
        return [(named[0], "belongs to equals:, which is not given")]
    if not check_values.depends(check):
        try:
            check_values.bounds_of(check, check_values.NO_NAMES)
        except ExpressionError as error:
            return [(str(error.key[0]), str(error))]
    return []


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
