"""The figures of trials, case by case, for comparisons and scaling tables: all in one read.

for found in by_case(store, trials, since, until):
    found.test, found.values[("triad", "MB/s", "higher")], found.excluded
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from seatrial.errors import UsageError
from seatrial.grouping import grouped
from seatrial.journal.events import FigureGiven
from seatrial.model import codes
from seatrial.model.figures import place_of
from seatrial.model.identifiers import case_name, show
from seatrial.results.store.queries import MEASURED, sql_list
from seatrial.results.store.schema import Store
from seatrial.results.store.tables import (
    UNFINISHED,
    CaseId,
    Column,
    Json,
    MachineName,
    TestName,
    TrialRow,
    TrialTag,
    read,
)
from seatrial.units import (
    NO_DIRECTION,
    Better,
    converted,
    count,
    direction_text,
    listed,
    show_converted,
    show_size,
)

ELAPSED = ("elapsed", "s", "lower")
NUMBERS = ("nodes", "tasks", "threads")  # of a case without a parameter of that name
CORES = "cores"  # tasks x threads, likewise
_RIGHT = (*MEASURED, codes.GIVEN.number)
_NOT_EXCLUDED = (*_RIGHT, *UNFINISHED, codes.RECALLED.number)
_ATTRIBUTES = (*NUMBERS, "machine", "toolchain", "stage", "node", "trial", "test")

Kind = tuple[str, str, str]  # a metric's name, unit and direction


class GivenFigure(Struct, frozen=True):
    """A figure that somebody else gave: of ``n`` measurements, with their standard deviation, least
    and greatest, if these were given. ``source`` and ``date`` tell where it comes from."""

    value: float
    n: int
    sd: float | None = None
    least: float | None = None
    greatest: float | None = None
    #: what it was measured on; "" where that is not known
    system: str = ""
    source: str = ""
    #: a year, a month or a day
    date: str = ""


class CaseRuns(Struct, frozen=True):
    """A case of a trial, and its runs in one stage (``alone``, ``full`` or "")."""

    test: str
    #: those that it is told by, and behind them those ``at_default``
    parameters: dict[str, str]
    machine: str
    toolchain: str
    stage: str
    node: str
    trial: str
    nodes: int | None
    tasks: int | None
    threads: int | None
    build: str
    #: the rows of those that count
    runs: list[int]
    #: figures of runs whose answer was right, with the seconds of their scripts as ``elapsed``
    values: dict[Kind, list[float]]
    #: the other runs by verdict, without recalled runs and those whose case runs again
    excluded: dict[str, int]
    #: of its test, as ``tests.tags``
    tags: str = ""
    #: figures that somebody else gave: no runs, but their values are among ``values``
    given: dict[Kind, list[GivenFigure]] = {}
    #: the scheduler's jobs of the ``values``, one for each of them, "" where there is none
    jobs: dict[Kind, list[str]] = {}
    at_default: frozenset[str] = frozenset()
    #: its id, and the folder of its trial; "" where they are not known
    case: str = ""
    folder: str = ""

    @property
    def key_parameters(self) -> dict[str, str]:
        """The parameters that belong to its identity."""
        return {n: v for n, v in self.parameters.items() if n not in self.at_default}

    def attribute(self, name: str) -> str:
        """Return a parameter's value, or the attribute of that name; "" where it has none."""
        if name in self.parameters:
            return self.parameters[name]
        if name == CORES and self.tasks is not None and self.threads is not None:
            return str(self.tasks * self.threads)
        value = getattr(self, name) if name in _ATTRIBUTES else None
        return "" if value is None else str(value)


def unlike(kinds: Collection[Kind]) -> str:
    """Return how kinds of a metric differ, in unit or else in direction; "" if they do not."""
    units = dict.fromkeys(unit or "no unit" for _, unit, _ in kinds)
    if len(units) > 1:
        return f"units differ: {' and '.join(units)}"
    words = (direction_text(better) if better else "not known" for _, _, better in kinds)
    directions = dict.fromkeys(words)
    return f"directions differ: {' and '.join(directions)}" if len(directions) > 1 else ""


def given_in(case: CaseRuns, units: Mapping[str, str]) -> tuple[CaseRuns, list[str]]:
    """Return a case with its given figures in these units, by metric, where theirs are of the same
    dimension; and what was converted: ``50 GB/s = 47684 MiB/s``."""
    values, given, jobs = dict(case.values), dict(case.given), dict(case.jobs)
    told: list[str] = []
    for kind in case.given:
        name, unit, better = kind
        into = units.get(name, unit)
        factor = converted(1, unit, into)
        if into == unit or factor is None:
            continue
        told += [show_converted(one.value, unit, into) for one in case.given[kind][:1]]
        own, figures = values.pop(kind, []), given.pop(kind)
        there = (name, into, better)
        values[there] = [*values.get(there, ()), *(value * factor for value in own)]
        jobs[there] = [*jobs.get(there, ()), *jobs.pop(kind, ())]
        given[there] = [*given.get(there, ()), *(_times(one, factor) for one in figures)]
    return replace(case, values=values, given=given, jobs=jobs), told


def _times(one: GivenFigure, factor: float) -> GivenFigure:
    sd, least, greatest = (
        None if value is None else value * factor for value in (one.sd, one.least, one.greatest)
    )
    return replace(one, value=one.value * factor, sd=sd, least=least, greatest=greatest)


def figures_of(cases: Iterable[CaseRuns], kinds: Iterable[Kind]) -> list[float]:
    """Return the figures of cases in metrics of these kinds."""
    return [value for case in cases for kind in kinds for value in case.values.get(kind, ())]


def excluded_of(cases: Iterable[CaseRuns]) -> dict[str, int]:
    """Return the runs of cases that are excluded, by verdict."""
    total: Counter[str] = Counter()
    for case in cases:
        total.update(case.excluded)
    return dict(total)


def bound(cases: Sequence[CaseRuns]) -> list[dict[str, str]]:
    """Return the parameters of each case, without one at its default that another case does not
    have: that is of the same test before it got the parameter, and ran as with the default."""
    if not any(one.at_default for one in cases):
        return [one.parameters for one in cases]
    shared = set(cases[0].parameters).intersection(*(one.parameters for one in cases))
    return [
        {n: v for n, v in one.parameters.items() if n in shared or n not in one.at_default}
        for one in cases
    ]


def differing(cases: Iterable[CaseRuns], *attributes: str) -> str:
    """Return the parameters, and those of the ``attributes``, that cases do not share; "" if they
    share all."""
    cases = list(cases)
    shapes = [
        own | {name: getattr(one, name) for name in attributes}
        for own, one in zip(bound(cases), cases, strict=True)
    ]
    names = {name for shape in shapes for name in shape}
    return ", ".join(sorted(n for n in names if len({shape.get(n) for shape in shapes}) > 1))


def by_case(
    store: Store, trials: Sequence[TrialRow], since: int = 0, until: int = 0
) -> list[CaseRuns]:
    """Return what the cases of trials measured in runs that were created from ``since`` to before
    ``until`` (ns; 0: no bound), in the order of the cases. A case without such a run is there, too,
    with stage "" and nothing in it."""
    if not trials:
        return []
    rows = sql_list(trial.row for trial in trials)
    where = f"runs.trial IN ({rows})"
    where += f" AND runs.created >= {since}" if since else ""
    where += f" AND runs.created < {until}" if until else ""
    cases = _cases(store, rows)
    groups = _Groups(cases)
    right = f"{where} AND runs.code IN ({sql_list(_RIGHT)})"
    of_run = _add_runs(store, right, groups)
    _add_excluded(store, where, groups)
    _add_figures(store, right, of_run)
    begun = {case for case, _ in groups}
    found = {**groups, **{(row, ""): case for row, case in cases.items() if row not in begun}}
    return [_of_system(found[key]) for key in sorted(found)]


def _of_system(case: CaseRuns) -> CaseRuns:
    """Return a case of given figures as one of the system that they were measured on."""
    systems = {figure.system for figures in case.given.values() for figure in figures} - {""}
    return replace(case, machine=systems.pop()) if len(systems) == 1 else case


class _Groups(dict[tuple[int, str], CaseRuns]):
    """The runs of cases by case and stage, each made when it is first asked for."""

    def __init__(self, cases: Mapping[int, CaseRuns]) -> None:
        super().__init__()
        self._cases = cases

    def __missing__(self, key: tuple[int, str]) -> CaseRuns:
        case, stage = key
        nothing: dict[str, Any] = {"runs": [], "values": {}, "excluded": {}, "given": {}}
        found = msgspec.structs.replace(self._cases[case], stage=stage, jobs={}, **nothing)
        self[key] = found
        return found


def _add_runs(store: Store, right: str, groups: _Groups) -> dict[int, CaseRuns]:
    """Add the runs whose answer was right. Returns the group of each, and of each given figure."""
    of_run: dict[int, CaseRuns] = {}
    known: dict[tuple[int, str], tuple[CaseRuns, list[float], list[str]]] = {}
    given = codes.GIVEN.number
    sql = f"SELECT id, case_row, stage, code, elapsed, job_id FROM runs WHERE {right} ORDER BY id"
    for run, case, stage, code, elapsed, job in store.rows(sql):
        found = known.get((case, stage))
        if found is None:
            group = groups[case, stage]
            lists = group.values.setdefault(ELAPSED, []), group.jobs.setdefault(ELAPSED, [])
            found = known[case, stage] = (group, *lists)
        group, times, jobs = found
        of_run[run] = group
        if code == given:
            continue
        group.runs.append(run)
        if elapsed is not None:
            times.append(elapsed)
            jobs.append(job)
    for group, times, _ in known.values():
        if not times:
            del group.values[ELAPSED], group.jobs[ELAPSED]
    return of_run


def _add_excluded(store: Store, where: str, groups: _Groups) -> None:
    """Add the numbers of runs whose answer was not right."""
    sql = (
        "SELECT case_row, stage, code, sum(CASE WHEN again THEN 0 ELSE 1 END) FROM runs"
        f" WHERE {where} AND runs.code NOT IN ({sql_list(_NOT_EXCLUDED)})"
        " GROUP BY case_row, stage, code ORDER BY min(id)"
    )
    for case, stage, code, number in store.rows(sql):
        excluded = groups[case, stage].excluded
        if number:
            name = codes.code_of(code).name
            excluded[name] = excluded.get(name, 0) + number


class _CaseOfTrial(Struct, frozen=True):
    """A case as trials keep it."""

    row: Annotated[int, Column(source="cases.id")]
    case: CaseId
    folder: Annotated[str, Column(source="trials.path")]
    test: TestName
    parameters: Json
    defaults: Json
    tags: Annotated[str, Column(source="tests.tags")]
    machine: MachineName
    toolchain: str
    node: str
    trial: TrialTag
    nodes: int | None
    tasks: int | None
    threads: int | None
    build: str


def _cases(store: Store, trials: str) -> dict[int, CaseRuns]:
    """Return the cases of trials by their row in the store, without runs."""
    sql = (
        "FROM cases JOIN trials ON trials.id = cases.trial"
        f" JOIN tests ON tests.id = cases.test WHERE cases.trial IN ({trials})"
    )
    return {case.row: _without_runs(case) for case in read(store, _CaseOfTrial, "cases", sql)}


def cases_by_id(store: Store) -> dict[str, CaseRuns]:
    """Return every case of the store by its id, without runs."""
    sql = (
        "FROM cases JOIN trials ON trials.id = cases.trial JOIN tests ON tests.id = cases.test"
        " ORDER BY cases.id"
    )
    return {case.case: _without_runs(case) for case in read(store, _CaseOfTrial, "cases", sql)}


def _without_runs(case: _CaseOfTrial) -> CaseRuns:
    parameters = {**case.parameters, **case.defaults}
    shown = {name: show(value) for name, value in parameters.items()}

    def size(name: str, number: int | None) -> int | None:
        return number or _number_of(shown, name)  # figures that were given have 0

    return CaseRuns(
        test=case.test,
        parameters=shown,
        machine=case.machine,
        toolchain=case.toolchain,
        stage="",
        node=case.node,
        trial=case.trial,
        nodes=size("nodes", case.nodes),
        tasks=size("tasks", case.tasks),
        threads=size("threads", case.threads),
        build=case.build,
        runs=[],
        values={},
        excluded={},
        tags=case.tags,
        at_default=frozenset(case.defaults),
        case=case.case,
        folder=case.folder,
    )


def _number_of(parameters: Mapping[str, str], name: str) -> int | None:
    """Return the number of nodes, tasks or threads of a case that another tool knew by a parameter
    of that name; None if it is no such number."""
    text = parameters.get(name, "")
    return int(text) if text.isascii() and text.isdecimal() and int(text) else None


def _add_figures(store: Store, right: str, of_run: dict[int, CaseRuns]) -> None:
    """Add the figures. A metric of a test that is itself called elapsed replaces the script's
    time."""
    names = "SELECT id, name, unit, better FROM metric_names"
    kinds: dict[int, Kind] = {number: (n, u, b) for number, n, u, b in store.rows(names)}
    if not kinds:
        return
    own = {number for number, kind in kinds.items() if kind[0] == ELAPSED[0]}
    replaced: set[int] = set()
    sql = f"SELECT run, metric, value, job_id FROM runs JOIN metrics ON run = runs.id WHERE {right}"
    for run, metric, value, job in store.rows(sql):
        group = of_run[run]
        if metric in own and id(group) not in replaced:
            replaced.add(id(group))
            group.values.pop(ELAPSED, None)
            group.jobs.pop(ELAPSED, None)
        group.values.setdefault(kinds[metric], []).append(value)
        group.jobs.setdefault(kinds[metric], []).append(job)
    sql = (
        "SELECT given_figures.run, given_figures.metric, metrics.value, n, sd, least, greatest,"
        " events.detail FROM runs JOIN given_figures ON given_figures.run = runs.id"
        " JOIN metrics ON metrics.run = runs.id AND metrics.metric = given_figures.metric"
        f" JOIN events ON events.run = runs.id AND events.number = {FigureGiven.number:d}"
        f" WHERE {right}"
    )
    for run, metric, *figure, told in store.rows(sql):
        origin = [*told.split("\n")[1:], "", "", ""][:3]
        of_run[run].given.setdefault(kinds[metric], []).append(GivenFigure(*figure, *origin))


def causes(excluded: dict[str, int]) -> str:
    """Excluded runs as people read them: ``2 timeout, 1 failed``."""
    ordered = sorted(excluded.items(), key=lambda item: -item[1])
    return ", ".join(f"{count} {verdict}" for verdict, count in ordered)


# ---- tables --------------------------------------------------------------------------------------
#
# Which cases belong into one table: those that differ in the chosen parameters alone.
#
#     follow = along(cases, ["threads"], chosen=["threads"])   # ["size"], zipped with threads
#     panels(cases, {"threads", *follow})                      # lists of cases


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
