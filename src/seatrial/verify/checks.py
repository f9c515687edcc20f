"""The checks of ``verify:``: one function for each kind, and the faults of a check as it is
written.

for finding in find_faults(test.verify, run_directory, exit_code):
    print(finding.code.name, finding.text)   # wrong answer  stdout does not contain '...'
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from seatrial.journal.codes import CHECK_ERROR, FAILED, TOO_LARGE, WRONG_ANSWER, Code
from seatrial.suite.model import Check
from seatrial.units import bytes_of, show_number
from seatrial.verify.figures import Finding, number, shown
from seatrial.verify.reading import (
    DEFAULT_LIMIT,
    HostFailed,
    Missing,
    TooLarge,
    Unreadable,
    read_text,
    sha256,
    size_of,
)
from seatrial.verify.search import SearchFailed, find_all


def find_faults(checks: Sequence[Check], folder: Path, exit_code: int | None) -> list[Finding]:
    """Return the findings of a test's checks on a run, the exit code first. If no check is about
    the exit code, it must be 0. ``exit_code`` is None if the script left none."""
    ordered = sorted(checks, key=lambda check: check.exit_code is None)
    if not ordered or ordered[0].exit_code is None:
        ordered.insert(0, Check(exit_code=0))
    found = [find_fault(check, folder, exit_code) for check in ordered]
    return [finding for finding in found if finding is not None]


def find_fault(check: Check, folder: Path, exit_code: int | None) -> Finding | None:
    """Return the finding of one check on the run in ``folder``; None if it passes. Raises nothing,
    whatever the job wrote."""
    if check.exit_code is not None:
        return _exit_code(check, exit_code)
    kinds = _kinds_of(check)
    if len(kinds) != 1:
        return Finding(CHECK_ERROR, f"a check is not valid: {faults_of_check(check)[0]}")
    try:
        fault = _FUNCTIONS[kinds[0]](check, getattr(check, kinds[0]), folder)
    except Unreadable as error:
        return unreadable(error, WRONG_ANSWER)
    except SearchFailed as error:
        return Finding(CHECK_ERROR, f"{check.in_file}: the pattern of a check {error}")
    except (re.error, ValueError, IndexError) as error:
        return Finding(CHECK_ERROR, f"the check of {check.in_file} is not valid: {error}")
    return Finding(WRONG_ANSWER, fault) if fault else None


def unreadable(error: Unreadable, missing: Code) -> Finding:
    """Return the finding for a file that cannot be read. ``missing``: the verdict if it does not
    exist. Raises HostFailed."""
    if isinstance(error, HostFailed):
        raise error
    if isinstance(error, Missing):
        return Finding(missing, str(error))
    return Finding(TOO_LARGE if isinstance(error, TooLarge) else CHECK_ERROR, str(error))


def _exit_code(check: Check, exit_code: int | None) -> Finding | None:
    if exit_code is None:
        return Finding(FAILED, "the script left no exit code: it did not come to its end")
    if check.exit_code in ("any", exit_code):
        return None
    signal = f" (ended by signal {exit_code - 128})" if 128 < exit_code < 160 else ""
    return Finding(FAILED, f"exit code {exit_code}{signal}, not {check.exit_code}")


# ---- the other kinds: the fault of a run, "" if there is none --------------------------------


def _contains(check: Check, wanted: str, folder: Path) -> str:
    found = wanted in _text_of(check, folder)
    return "" if found else f"{check.in_file} does not contain {shown(wanted)}"


def _absent(check: Check, unwanted: str, folder: Path) -> str:
    before, found, _ = _text_of(check, folder).partition(unwanted)
    line = before.count("\n") + 1
    return f"{check.in_file} contains {shown(unwanted)} in line {line}" if found else ""


def _matches(check: Check, pattern: str, folder: Path) -> str:
    (found,) = find_all([pattern], _text_of(check, folder), most=1)
    return "" if found else f"{check.in_file} does not match {shown(pattern)}"


def _file(check: Check, name: str, folder: Path) -> str:
    try:
        size_of(folder, name)
    except HostFailed:
        raise
    except Unreadable as error:
        return str(error)
    return ""


def _value(check: Check, pattern: str, folder: Path) -> str:
    """Every number that is found must pass, so that a right one cannot hide a wrong one."""
    if check.equals is None:
        raise ValueError("value: needs equals:")
    (found,) = find_all([pattern], _text_of(check, folder))
    if not found:
        return f"{check.in_file} has no value for {shown(pattern)}"
    allowed = check.tolerance + check.relative * abs(check.equals)
    rounding = 1e-12 * abs(check.equals) if allowed else 0.0  # 1.1 is within 0.1 of 1.0
    for text in found:
        try:
            value = number(text)
        except ValueError as error:
            return f"{check.in_file}: {error}, found by {shown(pattern)}"
        if not abs(value - check.equals) <= allowed + rounding:
            within = f" within {show_number(allowed)}" if allowed else ""
            return f"{check.in_file}: the value is {text}, not {check.equals:.12g}{within}"
    return ""


def _identical(check: Check, name: str, folder: Path) -> str:
    is_sum, wanted = sha256(folder, name), (check.sha256 or "").lower()
    if is_sum == wanted:
        return ""
    return f"{name} has sha256 {is_sum[:12]}..., not {wanted[:12]}..."


_FUNCTIONS: dict[str, Callable[[Check, str, Path], str]] = {
    "contains": _contains,
    "absent": _absent,
    "matches": _matches,
    "file": _file,
    "value": _value,
    "identical": _identical,
}
KINDS = ("exit_code", *_FUNCTIONS)
_COMPANIONS = {"equals": "value", "tolerance": "value", "relative": "value", "sha256": "identical"}


def _text_of(check: Check, folder: Path) -> str:
    limit = DEFAULT_LIMIT if check.size_limit is None else bytes_of(check.size_limit)
    return read_text(folder, check.in_file, limit)


def _kinds_of(check: Check) -> list[str]:
    return [kind for kind in KINDS if getattr(check, kind) is not None]


# ---- what is wrong with a check as it is written ------------------------------------------


def faults_of_check(check: Check) -> list[str]:
    """Return the faults of a check as a person wrote it, for the loader of suites."""
    kinds = _kinds_of(check)
    if len(kinds) != 1:
        given = f"{' and '.join(kinds)} are given" if kinds else "none is given"
        return [f"a check has exactly one of {', '.join(KINDS)}; {given}"]
    kind, faults = kinds[0], []
    if kind != "exit_code" and not getattr(check, kind):
        faults.append(f"{kind}: is empty")
    if kind in ("matches", "value"):
        fault = fault_of_pattern(getattr(check, kind), 1 if kind == "value" else None)
        faults += [f"{kind}: {fault}"] if fault else []
    for name, owner in _COMPANIONS.items():
        if getattr(check, name) not in (None, 0.0) and kind != owner:
            faults.append(f"{name}: belongs to {owner}:, which is not given")
    if kind == "value" and check.equals is None:
        faults.append("value: needs equals: the number that it must be")
    if kind == "identical" and not re.fullmatch("[0-9a-fA-F]{64}", check.sha256 or ""):
        faults.append("identical: needs sha256: 64 hexadecimal digits, as sha256sum prints them")
    if check.size_limit is not None and (fault := fault_of_size(check.size_limit)):
        faults.append(f"size_limit: {fault}")
    return faults


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


def fault_of_size(size: int | str) -> str:
    """Return the fault of a size as it is written; "" if it has none."""
    try:
        return "" if bytes_of(size) > 0 else f"{size!r} must be more than 0"
    except ValueError as error:
        return str(error)
