"""Failures that are known: a run that fails as a person expects has the verdict ``known``.

    known = KnownFailures(record.known_failures)
    code, reason, about = known.judged(case, WRONG_ANSWER, "x is 3, not 4", time)
    code.name, about              # known, "ifx 2023.1 vectorises the loop wrongly"

A run that passes keeps its verdict; ``about`` then says that it was expected to fail.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from fnmatch import fnmatchcase
from functools import lru_cache

from msgspec.structs import replace

from seatrial.documents import Spot
from seatrial.journal import codes
from seatrial.journal.codes import Code
from seatrial.suite.model import Case, KnownFailure, Test
from seatrial.units import SECOND_NS

# What a test, a library or a compiler can do wrong. What nodes and schedulers do is never known.
KNOWABLE: dict[str, Code] = {
    code.name: code
    for code in (
        codes.FAILED,
        codes.WRONG_ANSWER,
        codes.PERFORMANCE,
        codes.TIMEOUT,
        codes.BUILD_FAILED,
        codes.OUT_OF_MEMORY,
        codes.NO_FIGURE,
        codes.TOO_LARGE,
        codes.CHECK_ERROR,
        codes.HUNG,
    )
}


class KnownFailures:
    """The known failures of a trial."""

    def __init__(self, entries: Sequence[KnownFailure]) -> None:
        self._entries = entries

    def of(self, case: Case, time: int) -> KnownFailure | None:
        """Return the known failure of a case at a time (ns), up to the end of its last day; None if
        it has none."""
        for each in self._entries:
            is_of_case = _fits(each.tests, case.test) and _fits(each.toolchains, case.toolchain)
            if is_of_case and time < end_of(each.until):
                return each
        return None

    def judged(self, case: Case, code: Code, reason: str, time: int) -> tuple[Code, str, str]:
        """Return the verdict on a run with what is known of its case: the code, its reason, and why
        its failure is known ("" where it is not)."""
        known = self.of(case, time) if self._entries else None
        if known is None:
            return code, reason, ""
        if code is codes.PASS:
            return code, reason, known.reason
        if code.name not in (known.verdicts or KNOWABLE):
            return code, reason, ""
        found = f"{code.name}: {reason}" if reason else code.name
        return codes.KNOWN, f"{found} (known until {known.until}: {known.reason})", known.reason


def known_failures_of(
    tests: Mapping[str, Test], of_plan: Sequence[KnownFailure] = ()
) -> list[KnownFailure]:
    """Return the known failures of a trial of these tests: the plan's, then the tests' own."""
    own = [
        replace(each, tests=[test.name]) for test in tests.values() for each in test.known_failures
    ]
    return [*of_plan, *own]


@lru_cache(maxsize=64)
def end_of(day: str) -> int:
    """Return the end of a day (UTC) in ns since the epoch. Raises ValueError for what is no
    date."""
    try:
        found = date.fromisoformat(day)
    except ValueError as error:
        raise ValueError(f"{day!r} is not a date; write e.g. 2026-05-01") from error
    after = datetime(found.year, found.month, found.day, tzinfo=UTC) + timedelta(days=1)
    return round(after.timestamp()) * SECOND_NS


def check_known_failures(entries: Sequence[KnownFailure], at: Spot, of_plan: bool = False) -> None:
    """Add every fault of known failures that does not depend on other files. One of a plan names
    tests or toolchains, as it would hide each failure otherwise."""
    for i, each in enumerate(entries):
        spot = at.inside("known_failures", i)
        if not each.reason.strip():
            spot.fault("is empty; say why the failure is known", "reason")
        spot.parsed(end_of, each.until, "until")
        if not each.verdicts:
            which = f"say which failures are known, of {', '.join(KNOWABLE)}"
            spot.fault(f"names none, so that each new failure would be known; {which}", "verdicts")
        if of_plan and not (each.tests or each.toolchains):
            spot.fault("names no tests and no toolchains; say which fail", "tests")
        for j, name in enumerate(each.verdicts):
            if name not in KNOWABLE:
                listed = ", ".join(KNOWABLE)
                spot.fault(f"{name!r} cannot be known; choose of {listed}", "verdicts", j)


def _fits(patterns: Iterable[str], name: str) -> bool:
    wanted = list(patterns)
    return not wanted or any(fnmatchcase(name, each) for each in wanted)
