"""References of figures and of files: learned from trials, asked of runs; and what was promised.

Learned are measured medians, with a tolerance from their spread.

learn_from(store, [trial])            # of one trial: all its figures
learn_from(store, trials)             # of a history: the figures since the last confirmed change
"""

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from msgspec import UNSET, Struct

from seatrial.errors import SeatrialError
from seatrial.execute.plan.component import file_system_of
from seatrial.execute.trial_folder import Record, TrialFolder, references_by_now, references_of
from seatrial.judge import references as refs
from seatrial.judge.learning import learn, learned_files
from seatrial.judge.promises import NOTHING, Beside, Promises, beside, promises_of
from seatrial.judge.references import Learned, Reference, References
from seatrial.judge.statistics import changes
from seatrial.model.codes import PASS, PERFORMANCE
from seatrial.model.figures import ELAPSED, MetricValue
from seatrial.model.file_model import Scalar
from seatrial.model.identifiers import show
from seatrial.model.machine import Machine
from seatrial.model.machine_file import described, is_path, load_machine, machine_file
from seatrial.model.test import Case, Stage, Test
from seatrial.results.case_figures import CaseRuns, Kind, unlike
from seatrial.results.store import queries, series
from seatrial.results.store.schema import Store
from seatrial.results.store.tables import (
    CaseRow,
    Filters,
    Measured,
    MetricRow,
    RunRow,
    SummaryRow,
    TrialRow,
)
from seatrial.units import NO_DIRECTION, better_of, count, listed, show_converted

WIDE = 0.2  # a tolerance that people are warned of
USELESS = 0.5  # one that must be asked for


class Learning(NamedTuple):
    """The references that trials give, what gives none, what was not used though it was there, and
    references that allow much: the latter three as (what, why)."""

    references: list[Reference]
    left_out: list[tuple[str, str]]
    older: list[tuple[str, str]]
    wide: list[tuple[str, str]]


def learn_from(
    store: Store,
    trials: Sequence[TrialRow],
    metric: str = "",
    since: int = 0,
    two_sided: bool = False,
    force: bool = False,
    stage: Stage = "alone",
) -> Learning:
    """One reference for each metric (or that metric alone) of cases that differ in nothing but
    their node, from the figures of runs whose answer was right, created since a time (ns), of one
    stage: ``full``, or all runs that were not at full machine. ``elapsed`` must be asked for. The
    formula of the tolerance is that of ``judge.learning.learn``. Of several trials only the level
    since the last confirmed change counts, or a step would pass for scatter and widen the
    tolerance; but not where cases are pinned to nodes, for nodes differ without a change. A
    reference that would allow half of its value or more is left out, unless by ``force``."""
    learning = Learning([], [], [], [])
    for pool in _pools(store, trials, metric, since, stage):
        if pool.has_no_direction:
            if metric:
                learning.left_out.append((metric, "has no direction (better: none)"))
            continue
        what = f"{pool.case.name.removesuffix(f'%{pool.case.node}')} {pool.metric}"
        used = pool.figures
        if len(trials) > 1 and not pool.case.node:
            used = _since_change(pool.figures)
            if older := len(pool.figures) - len(used):
                since_day = time.strftime("%Y-%m-%d", time.localtime(used[0].time // 10**9))
                reason = f"{count(older, 'figure')} before the change of {since_day} not used"
                learning.older.append((what, reason))
        try:
            reference = _reference(pool, used, _tag_of(used, trials), two_sided, stage)
            if wide := _width_words(reference, len(used), force=force):
                learning.wide.append((what, f"{wide}; more runs may narrow it"))
            learning.references.append(reference)
        except ValueError as error:
            learning.left_out.append((what, str(error)))
    return learning


def _width_words(reference: Reference, n: int, *, force: bool) -> str:
    """Return how much a wide reference allows, in words; "" for others. Raises ValueError for one
    that is too wide to tell anything, unless by ``force``."""
    width = max(-(reference.lower or 0.0), reference.upper or 0.0)
    if width < WIDE:
        return ""
    words = f"the reference of {count(n, 'figure')} allows {100 * width:.1f} %"
    if width >= USELESS and not force:
        raise ValueError(f"{words}, so it tells nothing; find out why they scatter, or --force it")
    return words


def _tag_of(figures: Sequence[Measured], trials: Sequence[TrialRow]) -> str:
    """Return the tag of the trial of the latest figure."""
    latest = figures[-1].trial if figures else None
    return next((trial.tag for trial in trials if trial.row == latest), "")


def _since_change(figures: list[Measured]) -> list[Measured]:
    """Return the figures since the last confirmed change."""
    found = changes.find([figure.value for figure in figures])
    return figures[max((c.settled for c in found if c.tier == "confirmed"), default=0) :]


class _Pool(Struct, frozen=True):
    """The figures of one metric, by time, over the cases that one reference is for; ``case`` is one
    of these."""

    case: CaseRow
    metric: str
    figures: list[Measured]

    @property
    def has_no_direction(self) -> bool:
        return {figure.better for figure in self.figures} == {NO_DIRECTION}


def _pools(
    store: Store, trials: Sequence[TrialRow], metric: str, since: int, stage: Stage
) -> Iterable[_Pool]:
    """Pools in the order of the cases; also those of which no run gave a right answer."""
    wanted = {trial.row: trial for trial in trials}
    cases = {
        (trial.tag, case.id): case for trial in trials for case in queries.cases_of(store, trial)
    }
    names = series.case_names(store)
    pools: dict[tuple[object, ...], _Pool] = {}

    def pool_of(case: CaseRow, name: str) -> _Pool:
        bound = tuple(sorted((key, show(value)) for key, value in case.parameters.items()))
        key = (case.test, name, bound, case.toolchain)
        return pools.setdefault(key, _Pool(case, name, []))

    for trial in trials:
        for samples in queries.summary(store, trial):
            if metric in ("", samples.metric) and _is_of(samples.stage, stage):
                pool_of(cases[trial.tag, samples.case], samples.metric)
    asked = [metric] if metric == ELAPSED else [pool.metric for pool in pools.values()]
    for name in dict.fromkeys(asked):
        for one in _measured(store, wanted, name, since, stage):
            case = cases[wanted[one.trial].tag, names[one.case].case]
            pool_of(case, name).figures.append(one)
    return pools.values()


def _is_of(own: str, stage: Stage) -> bool:
    """Return whether a run of its ``own`` stage is one that a reference of ``stage`` is for."""
    return (own == "full") == (stage == "full")


def _measured(
    store: Store, wanted: dict[int, TrialRow], name: str, since: int, stage: Stage
) -> Iterable[Measured]:
    filters = Filters(rehearsed=True, since=since)
    if len(wanted) == 1:
        (trial,) = wanted.values()
        filters = Filters(trial=trial.path, since=since)
    found = series.measured(store, name, filters)
    return [one for one in found if one.trial in wanted and _is_of(one.stage, stage)]


def _reference(
    pool: _Pool, used: list[Measured], latest: str, two_sided: bool, stage: Stage
) -> Reference:
    """The reference by the ``used`` figures, the last of which is of the trial ``latest``. Raises
    ValueError where none can come of them."""
    if not used:
        raise ValueError("no run of it gave a right answer")
    kinds = {(figure.unit, figure.better) for figure in pool.figures}
    if len(kinds) > 1:
        differ = unlike([("", *kind) for kind in sorted(kinds)])
        raise ValueError(f"of its figures the {differ}")
    ((unit, direction),) = kinds
    better = better_of(direction)
    value, lower, upper = learn([figure.value for figure in used], better, two_sided)
    case = pool.case
    return Reference(
        test=case.test,
        metric=pool.metric,
        unit=unit,
        where=case.parameters,
        toolchain=case.toolchain or None,
        value=value,
        lower=lower,
        upper=upper,
        stage=stage,
        learned=Learned(
            trial=latest,
            runs=len(used),
            at=time.strftime("%Y-%m-%d"),
            trials=len({figure.trial for figure in used}),
        ),
    )


# ---- expected figures ----------------------------------------------------------------------------
#
# What the references of a trial ask of its figures.
#
#     expected(figure, case, references_for(store, trial))     # Expected(text=">= 11.4 GB/s", ...)


class Expected(Struct, frozen=True):
    """What a reference asks of a figure: in words, its value and bounds in its unit, and how far
    the figure is off that value in per cent. ``meets`` is None where nothing can be said."""

    text: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    off: float | None = None
    meets: bool | None = None


def references_for(store: Store, trial: TrialRow) -> References:
    """The references that the trial is judged by; none where its folder cannot be read any more."""
    folder = TrialFolder(Path(trial.path))
    try:
        if queries.has_other_references(store, trial):
            return references_by_now(folder, folder.record())
        return references_of(folder.record())
    except SeatrialError:
        return References()


def with_elapsed(
    metrics: Sequence[MetricRow], run: RunRow, references: References
) -> list[MetricRow]:
    """Return the figures of a run, with the time of its script where a reference judges that."""
    known = run.elapsed is not None and all(one.name != ELAPSED for one in metrics)
    if run.elapsed is None or not known or (run.test, ELAPSED) not in references.by_metric:
        return list(metrics)
    return [MetricRow(ELAPSED, run.elapsed, "s", "lower"), *metrics]


def expected(
    metric: MetricRow, case: CaseRow, references: References, stage: str = ""
) -> Expected | None:
    """What the reference of a figure of a run in this stage is, a value or bounds; None where it
    has none."""
    if metric.better == NO_DIRECTION:
        return None
    try:
        bound, toolchain = case.parameters, case.toolchain
        found = refs.matching(references, case.test, metric.name, bound, toolchain, stage)
    except refs.AmbiguousReference:
        return Expected("ambiguous")
    if found is None:
        return None
    if found.value is not None:
        text = show_converted(found.value, found.unit, metric.unit)
    else:
        unit, limits = found.unit, ((">=", found.min), ("<=", found.max))
        text = ", ".join(
            f"{sign} {show_converted(v, unit, metric.unit)}" for sign, v in limits if v is not None
        )
    alike = refs.in_unit(found, metric.unit)
    if alike is None:
        return Expected(text)
    better = better_of(metric.better)
    low, high = refs.bounds(alike, better)
    judged = refs.judge(MetricValue(metric.name, metric.value, metric.unit, better), found)
    off = refs.percent_off(metric.value, alike)
    return Expected(text, alike.value, low, high, off, judged is None)


# ---- unreferenced --------------------------------------------------------------------------------
#
# Figures for which there is no reference: nothing judges how good they are.
#
#     found = unreferenced(queries.summary(store, trial), cases, references)
#     found.words          # 1 of 4 figures has no reference: hpl{n=2} rmax


MAX_NAMED = 3


class UnreferencedFigures(Struct, frozen=True):
    """How many figures there are (a metric of a case in a stage is one), and the names of those
    that have no reference."""

    figures: int
    without: list[str]

    @property
    def words(self) -> str:
        """How many have none, and which, in words; "" where each has one."""
        if not self.without:
            return ""
        verb = "has" if len(self.without) == 1 else "have"
        of = f"{len(self.without)} of {count(self.figures, 'figure')}"
        return f"{of} {verb} no reference: {listed(self.without, MAX_NAMED)}"


def is_unreferenced(
    references: References, case: CaseRow | Case, metric: str, better: str, stage: str = ""
) -> bool:
    """Return whether a figure of a case has a direction and no reference."""
    if better == NO_DIRECTION:
        return False
    try:
        own = (case.test, metric, case.parameters, case.toolchain, stage)
        return refs.matching(references, *own) is None
    except refs.AmbiguousReference:  # its run is a check error
        return False


def unreferenced(
    rows: Iterable[SummaryRow], cases: Mapping[str, CaseRow], references: References
) -> UnreferencedFigures:
    """Return which figures of right runs have no reference. ``cases`` are by their ids."""
    judged = [row for row in rows if row.n and row.better != NO_DIRECTION]
    without = [
        f"{row.case_name} {row.metric}"
        for row in judged
        if is_unreferenced(references, cases[row.case], row.metric, row.better, row.stage)
    ]
    return UnreferencedFigures(len(judged), without)


def unreferenced_of_runs(store: Store, trial: TrialRow) -> dict[str, list[str]]:
    """Return the metrics without a reference of each run of a trial that has some, by its id."""
    references = references_for(store, trial)
    cases = {case.id: case for case in queries.cases_of(store, trial)}
    runs = queries.runs(store, Filters(trial=trial.path))
    figures = queries.figures(store, [run.row for run in runs])
    found = {
        run.run_id: [
            one.name
            for one in figures.get(run.row, ())
            if is_unreferenced(references, cases[run.case], one.name, one.better, run.stage)
        ]
        for run in runs
    }
    return {run_id: names for run_id, names in found.items() if names}


# ---- sums of files -------------------------------------------------------------------------------
#
# The checksums of files that must be the same bit for bit: learned from trials, and compared.
#
#     learned = learn_sums([trial])            # one reference for each case and file
#     sums_of(TrialFolder(path), record)       # {(case id, "restart.nc"): Counter({"5d41...": 3})}


RIGHT = (PASS.number, PERFORMANCE.number)
DIGITS = 12  # of a sum, as people see it

Sums = Mapping[tuple[str, str], Counter[str]]
"""How many runs wrote a file with which sum, by (case id, file)."""


def files_of(tests: "Iterable[Test]") -> dict[str, list[str]]:
    """Return the files that must be the same bit for bit, by test."""
    found = {}
    for test in tests:
        names = [check.identical for check in test.verify if check.identical is not None]
        if names:
            found[test.name] = list(dict.fromkeys(names))
    return found


def sums_of(folder: TrialFolder, record: "Record", right_only: bool = True) -> Sums:
    """Return the sums of such files, by the journal: those of runs with a right answer, or of all
    runs that were judged. A trial without such files is not read. Raises JournalError."""
    files = files_of(record.tests.values())
    if not files:
        return {}
    found: dict[tuple[str, str], Counter[str]] = {}
    for run in folder.runs(lambda event: event.test in files):
        if right_only and run.code not in RIGHT:
            continue
        for name in files[run.test]:
            if sha256 := (run.sha256 or {}).get(name):
                found.setdefault((run.case, name), Counter())[sha256] += 1
    return found


def bound_parameters(parameters: Mapping[str, Scalar]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, show(value)) for name, value in parameters.items()))


def learn_sums(trials: Iterable[TrialRow]) -> tuple[list[Reference], list[tuple[str, str]]]:
    """Return a reference for each case and file whose sum is learned, of the newest trial that has
    it (``trials``: the newest first), and what was left out: (what, why)."""
    references: dict[tuple[object, ...], Reference] = {}
    left_out: list[tuple[str, str]] = []
    for trial in trials:
        try:
            folder = TrialFolder(Path(trial.path))
            record = folder.record()
            learned = {name: learned_files(test) for name, test in record.tests.items()}
            if not any(learned.values()):
                continue
            cases = {case.id: case for case in folder.cases()}
            found = sums_of(folder, record)
        except SeatrialError as error:
            left_out.append((trial.tag, str(error)))
            continue
        for (case_id, name), sums in found.items():
            case = cases.get(case_id)
            if case is None or name not in learned[case.test]:
                continue
            key = _identity_of_file(case, name)
            if key in references:
                continue
            if len(sums) > 1:
                shown = ", ".join(f"{n} x {one[:DIGITS]}" for one, n in sums.most_common(3))
                reason = f"its runs wrote {count(len(sums), 'different file')}: {shown}"
                left_out.append((f"{case.name} {name}", reason))
            else:
                references[key] = _reference_of_sum(case, name, sums, trial.tag)
    return list(references.values()), left_out


def _identity_of_file(case: "Case", name: str) -> tuple[object, ...]:
    return case.test, name, case.toolchain, bound_parameters(case.parameters)


def _reference_of_sum(case: "Case", name: str, sums: Counter[str], tag: str) -> Reference:
    ((sha256, runs),) = sums.items()
    return Reference(
        test=case.test,
        file=name,
        where=case.parameters,
        toolchain=case.toolchain or None,
        sha256=sha256,
        learned=Learned(trial=tag, runs=runs, at=time.strftime("%Y-%m-%d")),
    )


# ---- promises ------------------------------------------------------------------------------------
#
# What was promised of the figures of trials: by the record that each trial keeps, or else by the
# machine's file as it is now.
#
#     promised_of(case_runs, kind, median)     # Promised(advertised="50 GB/s", share=0.988, ...)


MAX_KNOWN = 5000  # trials, or cases, whose promises are remembered
FRESH_S = 5.0  # the machine's file may be changed while a server runs
MAX_ASKED = 5  # trials of a figure, the latest ones


def promised_of(cases: Sequence[CaseRuns], kind: Kind, figure: float | None) -> Beside:
    """Return what was promised of a figure of some cases: the latest of them whose trial tells."""
    name, unit, _ = kind
    latest = {(case.folder, case.test): case.case for case in cases}
    for (folder, test), case in list(latest.items())[: -MAX_ASKED - 1 : -1]:
        if found := beside(promises_in(folder, test, case), name, figure, unit):
            return found
    return UNSET


def folders_of(store: Store) -> dict[tuple[str, str], str]:
    """Return the folders of the trials, by their tags and machines."""
    return {(trial.tag, trial.machine): trial.path for trial in queries.trials(store)}


def promises_in(folder: str, test: str, case: str) -> Promises:
    """Return what was promised of the metrics of a case, by its id; nothing where the trial in a
    folder cannot be read any more."""
    if not folder:
        return NOTHING
    try:
        changed = (Path(folder) / "trial.json").stat().st_mtime_ns
        span = int(time.monotonic() / FRESH_S)
        asked = _of_tests(folder, changed, span).get(test, NOTHING)
        return _of_case(folder, changed, span, test, case) if asked is None else asked
    except (OSError, SeatrialError, ValueError):
        return NOTHING


@lru_cache(MAX_KNOWN)
def _of_tests(folder: str, _changed: int, _span: int) -> dict[str, Promises | None]:
    """Return what was promised of the metrics of each test of a trial; None of a test whose cases
    ask for a directory, each for its own."""
    record = _record(folder, _changed)
    return {
        name: None
        if test.run.directory
        else _promises(record, test, _place_of(record, name, folder))
        for name, test in record.tests.items()
    }


@lru_cache(MAX_KNOWN)
def _of_case(folder: str, _changed: int, _span: int, test: str, case: str) -> Promises:
    record = _record(folder, _changed)
    found = TrialFolder(Path(folder)).case(case)
    asked = found.settings.directory if found is not None else ""
    return _promises(record, record.tests[test], asked or _place_of(record, test, folder))


@lru_cache(16)
def _record(folder: str, _changed: int) -> Record:
    return TrialFolder(Path(folder)).record()


def _place_of(record: Record, test: str, folder: str) -> str:
    """Return the folder in which the runs of a test work that ask for no directory; "" if it is not
    known. ``folder``: that of the trial."""
    if record.given is not None or record.imported is not None:
        return ""
    name = file_system_of(record.component, test) if record.component else ""
    systems = record.machine.file_systems
    return systems[name].path if name in systems else folder


def _promises(record: Record, test: Test, folder: str) -> Promises:
    """Return what was promised as the trial's record tells it; where that tells nothing, as the
    machine's file says it now: it may have been written later."""
    found = promises_of(record.machine, test, folder)
    machine = None if found or not folder else _machine_now(record.machine.machine)
    return found if machine is None else promises_of(machine, test, folder)


def _machine_now(name: str) -> Machine | None:
    """Return the machine of a name as its file says it now; None if no file describes it."""
    if is_path(name) or name not in described():
        return None
    file = machine_file(name)
    return None if file is None else _loaded(file.absolute(), file.stat().st_mtime_ns)


@lru_cache(16)
def _loaded(file: Path, _changed: int) -> Machine:
    return load_machine(file).machine
