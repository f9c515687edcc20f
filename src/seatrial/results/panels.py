"""Which cases belong into one table: those that differ in the chosen parameters alone.

follow = along(cases, ["threads"], chosen=["threads"])     # ["size"], which is zipped with threads
panels(cases, {"threads", *follow})                        # lists of cases
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from seatrial.errors import UsageError
from seatrial.grouping import grouped
from seatrial.model.figures import place_of
from seatrial.model.identifiers import case_name
from seatrial.results.store.by_case import ELAPSED, CaseRuns, Kind, bound
from seatrial.units import NO_DIRECTION, Better, count, listed, show_size

MAX_NAMED = 20  # metrics in a message
APART = ("toolchain", "machine", "stage")  # in one table only where they are chosen


class CasesTable(Struct, frozen=True, kw_only=True, rename={"reason": "why"}):
    """A table of one case: its metric, the parameters ``along`` that follow the chosen ones, and
    ``reason`` nothing can be told, "" where something can. ``left_out`` counts, by the reason, the
    cases of the study that are in no table."""

    case: str
    metric: str
    unit: str
    better: Better
    along: list[str] = []
    reason: str = ""
    left_out: dict[str, int] = {}

    @property
    def left_out_words(self) -> str:
        """The cases that are in no table, in words; "" if there are none."""
        if not self.left_out:
            return ""
        cases = count(sum(self.left_out.values()), "case")
        if len(self.left_out) == 1:
            return f"{cases} {next(iter(self.left_out))}"
        named = ", ".join(f"{number} {reason}" for reason, number in self.left_out.items())
        return f"{cases}: {named}"


class TableOverX(CasesTable, frozen=True, kw_only=True):
    """A table of one case over ``x``. Where x are words, or hold 0, they have ``names``, and an x
    is the place of its name. ``weak``: the work grows with x; ``in_bytes``: x are sizes."""

    x: str
    weak: bool
    names: list[str] = []
    in_bytes: bool = False

    def named(self, x: float) -> str:
        """Return an x as people write it, without rounding it."""
        if self.names:
            return self.names[int(x)]
        return show_size(x) if self.in_bytes else f"{x:.15g}"


C = TypeVar("C", bound=CasesTable)


def with_left_out(tables: Iterable[C], left_out: Mapping[str, int]) -> list[C]:
    """Return the tables of a study with the numbers of cases that are in none of them."""
    counts = {reason: number for reason, number in left_out.items() if number}
    return [replace(table, left_out=counts) for table in tables]


def by_test(cases: Iterable[CaseRuns]) -> dict[str, list[CaseRuns]]:
    """Return the cases of each test, in their order."""
    return grouped(cases, attrgetter("test"))


def parameters_of(cases: Iterable[CaseRuns]) -> list[str]:
    """Return the names of the parameters that some case has, sorted."""
    return sorted({name for one in cases for name in one.parameters})


def require_known(option: str, name: str, *known: Iterable[str]) -> None:
    """Raise UsageError where an option names what is not known."""
    names = dict.fromkeys(chain(*known))
    if name not in names:
        raise UsageError(f"{option} {name}: is none of {', '.join(names)}")


def metrics_of(cases: Iterable[CaseRuns]) -> list[str]:
    """Return the names of the metrics that some case has, sorted."""
    return sorted({kind[0] for one in cases for kind in one.values}, key=place_of)


def require_metric(metric: str, cases: Iterable[CaseRuns]) -> None:
    """Raise UsageError for a metric that no case has; "" is none that is asked for."""
    metrics = metrics_of(cases)
    if metric and metric not in metrics:
        known = listed(metrics, MAX_NAMED) or "none"
        raise UsageError(f"--metric {metric}: no run has it; there are {known}")


def kind_of(cases: Sequence[CaseRuns], metric: str) -> Kind:
    """Return the metric that is asked for, else the one with a direction that has most figures;
    the elapsed time only if there is no other."""
    counts = _numbers_of_figures(cases, metric)
    if not counts:
        return (metric, "", "") if metric else ELAPSED
    judged = [kind for kind in counts if kind[2] != NO_DIRECTION and kind != ELAPSED]
    candidates = list(counts) if metric else judged or list(counts)
    return max(candidates, key=counts.__getitem__)


def _numbers_of_figures(cases: Sequence[CaseRuns], metric: str) -> Counter[Kind]:
    """Return how many figures there are of each kind; of one ``metric`` if it is given."""
    counts: Counter[Kind] = Counter()
    for one in cases:
        for kind, values in one.values.items():
            if metric in ("", kind[0]):
                counts[kind] += len(values)
    return counts


def along(cases: Sequence[CaseRuns], axes: Sequence[str], chosen: Collection[str]) -> list[str]:
    """Return the parameters besides the ``chosen`` that are one to one with one of the axes: zipped
    with it, or what it follows from. Of toolchain, machine, stage and trial one may follow another:
    two machines whose toolchains have names of their own are two ways of running."""
    names = dict.fromkeys(name for one in cases for name in one.parameters)
    sides = [axis for axis in axes if axis in (*APART, "trial")]
    return [
        name
        for name in (*names, *APART)
        if name not in chosen
        and any(one_to_one(cases, name, axis) for axis in (axes if name in names else sides))
    ]


def following(cases: Sequence[CaseRuns], names: Sequence[str]) -> list[str]:
    """Return the parameters that follow from others: those one to one with one of them, and the
    tasks of a node where both nodes and tasks are named."""
    found = along(cases, names, names)
    if {"nodes", "tasks"} <= set(names):
        found += [
            name
            for name in parameters_of(cases)
            if name not in names and all(_is_tasks_of_node(one, name) for one in cases)
        ]
    return list(dict.fromkeys(found))


def _is_tasks_of_node(one: CaseRuns, name: str) -> bool:
    try:
        value, nodes, tasks = (float(one.attribute(each)) for each in (name, "nodes", "tasks"))
    except ValueError:
        return False
    return value * nodes == tasks


def one_to_one(cases: Sequence[CaseRuns], name: str, axis: str) -> bool:
    pairs = {
        (own.get(name, "") if name in one.parameters else one.attribute(name), one.attribute(axis))
        for own, one in zip(bound(cases), cases, strict=True)
    }
    values, xs = ({pair[i] for pair in pairs} for i in (0, 1))
    return len(pairs) == len(values) == len(xs) > 1


def panels(cases: Sequence[CaseRuns], left_out: Collection[str]) -> list[list[CaseRuns]]:
    """Return the cases of a test in groups, which share all that is not ``left_out``."""
    groups: dict[tuple[str, ...], list[CaseRuns]] = {}
    fixed = [name for name in APART if name not in left_out]
    for one, parameters in zip(cases, bound(cases), strict=True):
        own = sorted(f"{n}={v}" for n, v in parameters.items() if n not in left_out)
        key = (one.test, *(one.attribute(name) for name in fixed), *own)
        groups.setdefault(key, []).append(one)
    return list(groups.values())


Apart = Mapping[str, set[str]]
"""By test, the parameters that tell its cases apart."""


def distinguishing(cases: Sequence[CaseRuns]) -> Apart:
    """Return by test the parameters that some case is told by, and each one has."""
    told: dict[str, set[str]] = {}
    shared: dict[str, set[str]] = {}
    for one in cases:
        told.setdefault(one.test, set()).update(one.key_parameters)
        shared.setdefault(one.test, set(one.parameters)).intersection_update(one.parameters)
    return {test: told[test] & shared[test] for test in told}


def shown(one: CaseRuns, apart: Apart) -> dict[str, str]:
    """Return the parameters by which people know a case among others: those that it is told by, and
    one at its default where another case is told by it."""
    names = apart.get(one.test, ())
    return {n: v for n, v in one.parameters.items() if n not in one.at_default or n in names}


def title(panel: Sequence[CaseRuns], left_out: Collection[str], every: Sequence[CaseRuns]) -> str:
    """Return the name of a table: what its cases share, without what is ``left_out``; with the
    machine where the cases of all tables (``every``) are of several."""
    one, machine = panel[0], panel[0].attribute("machine")
    same_test = [case for case in every if case.test == one.test]
    apart = distinguishing(same_test) if one.at_default else {}
    own = {name: value for name, value in shown(one, apart).items() if name not in left_out}
    chain, stage = (
        "" if name in left_out else one.attribute(name) for name in ("toolchain", "stage")
    )
    several = "machine" not in left_out and len({case.attribute("machine") for case in every}) > 1
    named = case_name(one.test, own, chain, "", stage)
    return f"{named} on {machine}" if several else named


def differing_values(
    cases: Sequence[CaseRuns], axis: str, left_out: Collection[str]
) -> dict[str, list[list[str]]]:
    """Return what the cases of no two values of an axis share, besides what is ``left_out``: by its
    name the values for each of the axis, such as toolchain: intel and pgi."""
    sides = dict.fromkeys(one.attribute(axis) for one in cases)
    found = {}
    for name in (each for each in varying(cases) if each not in left_out):
        values = [
            sorted({one.attribute(name) or "none" for one in cases if one.attribute(axis) == side})
            for side in sides
        ]
        if not set.intersection(*map(set, values)):
            found[name] = values
    return found


def varying(cases: Sequence[CaseRuns]) -> list[str]:
    """Return the parameters that have two values or more, and such attributes behind them."""
    shapes = bound(cases)
    names = dict.fromkeys(name for shape in shapes for name in shape)
    vary = [name for name in names if len({shape.get(name, "") for shape in shapes}) > 1]
    return vary + [name for name in APART if len({one.attribute(name) for one in cases}) > 1]
