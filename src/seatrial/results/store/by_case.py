"""The figures of trials, case by case, for comparisons and scaling tables: all in one read.

for found in by_case(store, trials, since, until):
    found.test, found.values[("triad", "MB/s", "higher")], found.excluded
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from seatrial.journal.events import FigureGiven
from seatrial.model import codes
from seatrial.model.identifiers import show
from seatrial.results.store.queries import MEASURED, listed
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
from seatrial.units import converted, direction_text, show_converted

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
    rows = listed(trial.row for trial in trials)
    where = f"runs.trial IN ({rows})"
    where += f" AND runs.created >= {since}" if since else ""
    where += f" AND runs.created < {until}" if until else ""
    cases = _cases(store, rows)
    groups = _Groups(cases)
    right = f"{where} AND runs.code IN ({listed(_RIGHT)})"
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
        f" WHERE {where} AND runs.code NOT IN ({listed(_NOT_EXCLUDED)})"
        " GROUP BY case_row, stage, code ORDER BY min(id)"
    )
    for case, stage, code, count in store.rows(sql):
        excluded = groups[case, stage].excluded
        if count:
            name = codes.code_of(code).name
            excluded[name] = excluded.get(name, 0) + count


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
