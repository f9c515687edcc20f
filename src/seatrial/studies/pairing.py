"""Which cases of two sides are the same, and so are one row of a comparison.

    paired = pair(base, other)
    paired.across             # ["toolchain"]
    paired.pairs              # each with its name, and its cases and figures on either side

Cases are the same where test, parameters, toolchain, machine and stage are; a parameter at its
default counts where another case of the test has another value of it. What a side was chosen
by is left out of that where each side has one value of it, and not the same. Cases that differ in
their node alone, and a case of several trials, are one group.
"""

from collections.abc import Sequence
from typing import NamedTuple

from seatrial.errors import UsageError
from seatrial.store.by_case import CaseRuns
from seatrial.studies.panels import Apart, shown, told_apart
from seatrial.studies.selection import Side
from seatrial.suite.case_names import case_name

CROSSED = ("machine", "toolchain", "stage")

Key = tuple[str, ...]


class CasePair(NamedTuple):
    """What is one row of a comparison, as people read it, and its cases on either side."""

    name: str
    parameters: dict[str, str]
    first: list[CaseRuns]
    second: list[CaseRuns]


class Paired(NamedTuple):
    """The cases of two sides. ``across`` are the attributes that they were paired across."""

    across: list[str]
    pairs: list[CasePair]


def pair(first: Side, second: Side, across: Sequence[str] = (), each_node: bool = False) -> Paired:
    """Pair the cases of two sides, also ``across`` parameters that may differ; with ``each_node``
    each node by itself. Raises UsageError where a side has no run that is over, or nothing is on
    both sides."""
    _require_parameters(across, first, second)
    crossed = list(dict.fromkeys([*_crossed(first, second), *across]))
    apart = told_apart([*first.cases, *second.cases])
    one, other = (_groups(side, crossed, apart, each_node) for side in (first, second))
    for side, found in ((first, one), (second, other)):
        if not found:
            raise UsageError(f"{side.text}: no run of it is over yet; see `seatrial runs`")
    if not one.keys() & other.keys():
        raise UsageError(_nothing_shared(first, second, crossed))
    attributes = [
        name
        for name in CROSSED
        if name not in crossed and len(first.all_of(name) | second.all_of(name)) > 1
    ]
    pairs = []
    for key in dict.fromkeys([*one, *other]):
        named = _name((one.get(key) or other[key])[0], crossed, apart, attributes, each_node)
        pairs.append(CasePair(*named, one.get(key, []), other.get(key, [])))
    return Paired(crossed, pairs)


def _require_parameters(names: Sequence[str], first: Side, second: Side) -> None:
    known = {name for side in (first, second) for one in side.cases for name in one.parameters}
    for name in names:
        if name not in known:
            listed = ", ".join(sorted(known)) or "none"
            raise UsageError(f"--across {name}: no case has this parameter; there are {listed}")


def _crossed(first: Side, second: Side) -> list[str]:
    """What each side has one value of, and not the same: the sides are chosen by it."""
    names = [name.removeprefix("param.") for name in (*first.conditions, *second.conditions)]
    return [
        name
        for name in dict.fromkeys([*CROSSED, *names])
        if name not in ("test", "tag")
        and len(first.all_of(name)) == len(second.all_of(name)) == 1
        and first.all_of(name) != second.all_of(name)
    ]


def _bound(member: CaseRuns, crossed: Sequence[str], apart: Apart) -> dict[str, str]:
    """Return the parameters that tell a case from the others."""
    return {name: value for name, value in shown(member, apart).items() if name not in crossed}


def _key(member: CaseRuns, crossed: Sequence[str], apart: Apart, each_node: bool) -> Key:
    fixed = [f"{name}={getattr(member, name)}" for name in CROSSED if name not in crossed]
    own = sorted(f"{n}={v}" for n, v in _bound(member, crossed, apart).items())
    return (member.test, member.node if each_node else "", *fixed, *own)


def _groups(
    side: Side, crossed: Sequence[str], apart: Apart, each_node: bool
) -> dict[Key, list[CaseRuns]]:
    """Return the cases that are one row together, where a run of them is over."""
    groups: dict[Key, list[CaseRuns]] = {}
    for case in side.cases:
        groups.setdefault(_key(case, crossed, apart, each_node), []).append(case)
    over = {key for key, cases in groups.items() if any(c.values or c.excluded for c in cases)}
    return {key: cases for key, cases in groups.items() if key in over}


def _name(
    one: CaseRuns, crossed: Sequence[str], apart: Apart, named: Sequence[str], each_node: bool
) -> tuple[str, dict[str, str]]:
    """A case as people read it, and its parameters; attributes that not all share are ``named``."""
    bound = _bound(one, crossed, apart)
    toolchain, stage = (getattr(one, n) if n in named else "" for n in ("toolchain", "stage"))
    name = case_name(one.test, bound, toolchain, one.node if each_node else "", stage)
    if "machine" in named:
        name += f" on {one.machine}"
    return name, bound


def _nothing_shared(first: Side, second: Side, crossed: Sequence[str]) -> str:
    """Why no case is on both sides, as far as can be seen."""
    said = []
    for name in (*CROSSED, "test"):
        one, other = first.all_of(name), second.all_of(name)
        if name not in crossed and not one & other:
            named = (", ".join(sorted(side)) or "none" for side in (one, other))
            said.append(f"{name} {' and '.join(named)}")
    why = "; ".join(said) or "their parameters differ; see --across"
    remedy = ""
    if any(text.startswith(("toolchain", "machine")) for text in said):
        remedy = "; choose one of each, such as A:toolchain=gcc B:toolchain=clang"
    return f"no case is on both {first.text} and {second.text}: {why}{remedy}"
