"""Failures that are known: a run that fails as a person expects has the verdict ``known``.

    known = KnownFailures(record.known_failures)
    code, reason, about = known.judged(case, WRONG_ANSWER, "x is 3, not 4", time, cause)
    code.name, about              # known, "ifx 2023.1 vectorises the loop wrongly"

A run that passes keeps its verdict; ``about`` then says that it was expected to fail.
"""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from seatrial.model import codes
from seatrial.model.codes import Code
from seatrial.model.failures import KNOWABLE, KnownFailure, end_of
from seatrial.model.identifiers import matches
from seatrial.model.test import Case, Test


class KnownFailures:
    """The known failures of a trial."""

    def __init__(self, entries: Sequence[KnownFailure]) -> None:
        self._entries = entries

    def judged(
        self, case: Case, code: Code, reason: str, time: int, cause: str = ""
    ) -> tuple[Code, str, str]:
        """Return the verdict on a run that failed of a ``cause`` ("": not known of what), with what
        is known of its case at a time (ns): the code, its reason, and why its failure is known (""
        where it is not). The reason says so, too, where it was known up to a day that is over."""
        fitting = [each for each in self._entries if _is_of(each, case, code, cause)]
        known = next((each for each in fitting if time < end_of(each.until)), None)
        if code is codes.PASS:
            return code, reason, "" if known is None else known.reason
        if known is not None:
            text = f"{code.name}: {reason}" if reason else code.name
            text = f"{text} (known until {known.until}: {_cause(known)})"
            return codes.KNOWN, text, known.reason
        if fitting:
            over = f"was known until {fitting[0].until}, which is over: {_cause(fitting[0])}"
            reason = f"{reason} ({over})" if reason else over
        return code, reason, ""


def _cause(known: KnownFailure) -> str:
    return ", ".join(filter(None, (known.reason, known.url)))


def _is_of(known: KnownFailure, case: Case, code: Code, cause: str) -> bool:
    """Return whether a known failure is about a run of a case. One with causes says nothing of runs
    that pass: they may do so by chance."""
    if not (_fits(known.tests, case.test) and _fits(known.toolchains, case.toolchain)):
        return False
    if code is codes.PASS:
        return not known.causes
    return code.name in (known.verdicts or KNOWABLE) and _fits(known.causes, cause)


def known_failures_of(
    tests: Mapping[str, Test],
    of_plan: Sequence[KnownFailure] = (),
    of_machine: Sequence[KnownFailure] = (),
) -> list[KnownFailure]:
    """Return the known failures of a trial of these tests: the plan's, the tests' own, then those
    of the machine."""
    of_tests = [
        replace(each, tests=[test.name]) for test in tests.values() for each in test.known_failures
    ]
    return [*of_plan, *of_tests, *of_machine]


def _fits(patterns: Sequence[str], name: str) -> bool:
    return not patterns or matches(name, patterns)
