"""Whether the record and the cases of a trial fit each other: somebody else may have written them.

Both raise ValueError, with the member and its value.
"""

import math
from collections.abc import Iterable, Iterator, Sequence

import msgspec
from msgspec import Struct

from seatrial.conduct.policy import Policy
from seatrial.machine.model import Machine
from seatrial.suite.model import Case

LONGEST = 1e10  # seconds, some 300 years: an absolute time fits, too
LARGEST = 10_000_000  # nodes, tasks, repeats
MOST_CORES = 1_000_000  # of a node

_TIMES = (
    *("duration", "quiet_after", "per", "stale_after", "start", "end", "within"),
    *("short_for", "silent_for", "wait_least", "again", "pause"),
)
_COUNTS = ("nodes", "tasks", "tasks_per_node", "threads", "repeat", "at_once")


class CasesOf(Struct):
    """The members of a record by which cases are looked up; ``tests`` is None in a record that has
    none. A trial whose figures were ``given`` has no tests."""

    tests: dict[str, msgspec.Raw] | None = None
    given: dict[str, msgspec.Raw] | None = None
    policy: "ListsOf | None" = None


class ListsOf(Struct):
    """The lists of a policy that have a number for each case."""

    entry_of: list[int] = []
    unfit_of: list[int] = []
    bundle_of: list[int] = []


def require_record(policy: Policy, machine: Machine) -> None:
    """Require that times and numbers of a record are such as a plan could have."""
    for place, seconds in _times(policy, "policy"):
        if not (math.isfinite(seconds) and abs(seconds) <= LONGEST):
            raise ValueError(f"{place} is {seconds:g} s, which no trial takes")
    for place, numbers, below in (
        ("policy.entry_of", policy.entry_of, len(policy.entries)),
        ("policy.unfit_of", policy.unfit_of, len(policy.unfit) + 1),
    ):
        if numbers and not 0 <= min(numbers) <= max(numbers) < below:
            raise ValueError(f"{place} names a number beyond the list that it is of")
    for kind in machine.nodes:
        if kind.cores > MOST_CORES:
            raise ValueError(f"machine.nodes: {kind.names} has {kind.cores} cores")


def _times(value: object, place: str) -> Iterator[tuple[str, float]]:
    """Yield the times in a policy, each with its place."""
    if isinstance(value, Struct):
        for name in value.__struct_fields__:
            each = getattr(value, name)
            if name in _TIMES and isinstance(each, int | float):
                yield f"{place}.{name}", each
            elif isinstance(each, Struct) or (isinstance(each, list) and each):
                yield from _times(each, f"{place}.{name}")
    elif isinstance(value, list) and isinstance(value[0], Struct):
        for each in value:
            yield from _times(each, place)


def require_cases(record: CasesOf, cases: Sequence[Case]) -> None:
    """Require that each case is of a test of the record, and that the record's lists fit them."""
    require_each(record, cases)
    lists = record.policy or ListsOf()
    for name in ListsOf.__struct_fields__:
        size = len(getattr(lists, name))
        if size not in (0, len(cases)):
            raise ValueError(f"there are {len(cases)} cases, and {size} in policy.{name}")


def require_each(record: CasesOf, cases: Iterable[Case]) -> None:
    """Require that cases are of tests of the record, and of sizes that a machine could have."""
    tests = record.tests if record.given is None else None
    for case in cases:
        if tests is not None and case.test not in tests:
            raise ValueError(f"a case is of the test {case.test!r}, which trial.json does not have")
        if not 0 <= case.walltime <= LONGEST:
            raise ValueError(f"a case has the walltime {case.walltime:g} s")
        for name in _COUNTS:
            if not 0 <= (number := getattr(case, name)) <= LARGEST:
                raise ValueError(f"a case has {name} {number}")
