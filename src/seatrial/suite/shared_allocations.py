"""Which cases share allocations: those of the same nodes and scheduler options that are to.

    groups = sharing_groups(tests, cases, together=True)     # [1, 1, 2, 0]: by case

A test says so of its own cases (``run.within: allocation``, ``run.pieces``), a person of all cases
of a trial (``--together``).
"""

from collections.abc import Mapping, Sequence

from seatrial.suite.model import Case, JobOptions, Test
from seatrial.units import count, listed, show_seconds


def sharing_groups(
    tests: Mapping[str, Test], cases: Sequence[Case], together: bool = False
) -> list[int]:
    """Return for each case the number of its group, from 1 on, 0 for one that shares with none; an
    empty list where none does. A group has one allocation, so its cases need the same nodes."""
    numbers: dict[object, int] = {}
    groups = []
    for case in cases:
        test = tests[case.test]
        if case.only_builds or not (together or shares(test)):
            groups.append(0)
            continue
        of = case.test if shares(test) else ""
        key = (of, case.nodes, case.node, case.exclusive, case.at_once, case.job, case.place)
        features = tuple(sorted(test.requires.features))
        groups.append(numbers.setdefault((*key, features), len(numbers) + 1))
    return groups if numbers else []


def shares(test: Test) -> bool:
    """Return whether the cases and repeats of a test share an allocation."""
    return test.run.within == "allocation" or test.run.pieces is not None


def described_groups(cases: Sequence[Case], groups: Sequence[int], allocations: int) -> str:
    """Return how cases share allocations, and how long one may take at most, for people; "" where
    none does."""
    members: dict[int, list[Case]] = {}
    for case, group in zip(cases, groups, strict=False):
        if group:
            members.setdefault(group, []).append(case)
    if not members:
        return ""
    parts = []
    for together in members.values():
        runs = sum(case.repeat for case in together)
        first = together[0]
        where = f"on {first.node}" if first.node else f"on {count(first.nodes, 'node')}"
        seconds = sum(case.repeat * case.walltime for case in together) / first.at_once
        most = f"up to {show_seconds(seconds / allocations)}{' each' if allocations > 1 else ''}"
        parts.append(f"{count(runs, 'run')} of {count(len(together), 'case')} {where} ({most})")
    text = f"{count(len(members) * allocations, 'allocation')}: {listed(parts, 5)}"
    if len(members) > 1:
        differ = _differing([together[0] for together in members.values()])
        text += f"; cases with other {differ} cannot share one"
    return text


def _differing(cases: Sequence[Case]) -> str:
    """Return in what cases of different groups differ, in words."""
    if len({case.nodes for case in cases}) > 1:
        return "numbers of nodes"
    names = [
        name
        for name in ("exclusive", "at_once")
        if len({getattr(case, name) for case in cases}) > 1
    ]
    for name in JobOptions.__struct_fields__:
        if len({getattr(case.job, name) for case in cases}) > 1:
            names.append(name)
    return f"scheduler options ({', '.join(names)})" if names else "nodes"
