"""The page of file systems: what was promised and the best that was found, sweeps, drills, load.

Each file system of a machine's file is there, with what nobody has measured yet. Only trials on
this machine's own disks count that were not rehearsed; the newest `MAX_TRIALS` of them are read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
from msgspec import Struct

from seatrial.errors import SeatrialError, UsageError
from seatrial.execute.trial_folder import Record, TrialFolder
from seatrial.hooks import provided
from seatrial.journal.events import GaugeRead
from seatrial.journal.journal import read
from seatrial.judge.promises import beside
from seatrial.model.machine import FileSystem, Machine
from seatrial.plugins.filesystems.promised import advertised_of
from seatrial.results.case_figures import CaseRuns, Kind, by_case
from seatrial.results.references import promises_in
from seatrial.results.store import queries
from seatrial.results.store.schema import Store
from seatrial.results.store.tables import TrialRow
from seatrial.results.swept import SweptBest
from seatrial.results.tuned import Tuned, tuned
from seatrial.show.formatting import trial_address
from seatrial.show.page import Cell, Column, Figure, Link, Page, Part, Section, Table, Text
from seatrial.units import better_of, converted, count, in_per_cent, show_figure

MAX_TRIALS = 300
MAX_JOURNALS = 3  # of a machine, that are read for its gauges
NOT_MEASURED = "not measured"
READ, WRITE = "read", "write"


class _PromisedFigure(Struct, frozen=True, kw_only=True):
    """A figure that a file system was advertised with, and the best case that was measured: the
    median of its ``n`` runs. ``value`` and what follows are None or empty where nothing was."""

    machine: str
    file_system: str
    name: str
    advertised: str
    #: what was advertised in ``unit``
    promised: float | None = None
    metric: str = ""
    value: float | None = None
    unit: str = ""
    share: float | None = None
    case: str = ""
    nodes: int | None = None
    tasks: int | None = None
    n: int = 0
    trial: str = ""
    reason: str = ""


class _DrilledFigure(Struct, frozen=True, kw_only=True):
    """The stops of a probe in the newest trial of a drill (s): the longest of its ``n`` runs that
    went right. ``excluded``: how many did not, by verdict; where none did, there is no probe."""

    machine: str
    test: str
    probe: str
    longest_stop: float | None
    first_good: float | None
    n: int
    trial: str
    excluded: dict[str, int]


class _GaugeLoad(Struct, frozen=True, kw_only=True):
    """The readings of a gauge in the newest trial that read it, and how many of them failed. The
    values are None where none went well."""

    machine: str
    gauge: str
    readings: int
    failed: int
    least: float | None
    median: float | None
    highest: float | None
    trial: str


class _FileSystems(Struct, frozen=True, kw_only=True):
    """What is known of the file systems of machines. ``unread``: trials that cannot be read."""

    systems: list[tuple[str, str, FileSystem]]
    figures: list[_PromisedFigure]
    sweeps: list[Tuned]
    drills: list[_DrilledFigure]
    loads: list[_GaugeLoad]
    trials: int
    of_trials: int
    unread: list[str]


def file_systems(store: Store, machine: str = "") -> Page:
    """Return the page of the file systems, as ``seatrial filesystems``."""
    return _page(_found(store, machine))


def _found(store: Store, machine: str) -> _FileSystems:
    every = [row for row in queries.trials(store) if machine in ("", row.machine)]
    if machine and not every:
        raise UsageError(f"no trial on {machine}; `seatrial trials` lists them")
    rows = sorted(every, key=lambda row: row.created)[-MAX_TRIALS:]
    records, unread = _records(rows)
    machines = {record.machine.machine: record.machine for _, record in records}  # the newest
    measured = [(row, record) for row, record in records if not record.rehearsed]
    cases = by_case(store, [row for row, _ in measured])
    return _FileSystems(
        systems=[
            (name, each, system)
            for name, about in sorted(machines.items())
            for each, system in about.file_systems.items()
        ],
        figures=list(_figures(machines, cases)),
        sweeps=list(_sweeps(measured, unread)),
        drills=_drills(measured, cases),
        loads=list(_loads(measured, unread)),
        trials=len(rows),
        of_trials=len(every),
        unread=unread,
    )


def _records(rows: Iterable[TrialRow]) -> tuple[list[tuple[TrialRow, Record]], list[str]]:
    """Return trials with their records, without those of given and imported figures; and those that
    cannot be read."""
    found, unread = [], []
    for row in rows:
        try:
            record = TrialFolder(Path(row.path)).record()
        except SeatrialError as error:
            unread.append(str(error))
            continue
        if record.given is None and record.imported is None:
            found.append((row, record))
    return found, unread


# ---- what was promised --------------------------------------------------------------------


def _figures(machines: dict[str, Machine], cases: Sequence[CaseRuns]) -> Iterator[_PromisedFigure]:
    best = _best_of(cases)
    for machine, about in sorted(machines.items()):
        for name, system in about.file_systems.items():
            for figure, promised in advertised_of(system).items():
                none = _PromisedFigure(
                    machine=machine,
                    file_system=name,
                    name=figure,
                    advertised=show_figure(promised.value, promised.unit),
                    reason=NOT_MEASURED,
                )
                yield best.get((machine, name, figure), none)


def _best_of(cases: Sequence[CaseRuns]) -> dict[tuple[str, str, str], _PromisedFigure]:
    """Return the best that was measured of each advertised figure."""
    best: dict[tuple[str, str, str], _PromisedFigure] = {}
    for case in cases:
        for kind, values in case.values.items():
            if kind in case.given or not values:
                continue
            figure = _figure(case, kind, median(values), len(values))
            if figure is None:
                continue
            place = (figure.machine, figure.file_system, figure.name)
            if place not in best or _is_better(figure, best[place], kind):
                best[place] = figure
    return best


def _figure(case: CaseRuns, kind: Kind, value: float, n: int) -> _PromisedFigure | None:
    """Return a figure of a case beside what was promised of it; None if nothing was."""
    metric, unit, _ = kind
    promised = beside(promises_in(case.folder, case.test, case.case), metric, value, unit)
    if promised is None:
        return None
    settings = ",".join(f"{name}={value}" for name, value in case.key_parameters.items())
    return _PromisedFigure(
        machine=case.machine,
        file_system=promised.by,
        name=promised.name,
        advertised=promised.advertised,
        promised=promised.value,
        metric=metric,
        value=value,
        unit=unit,
        share=promised.share,
        case=f"{case.test}{{{settings}}}" if settings else case.test,
        nodes=case.nodes,
        tasks=case.tasks,
        n=n,
        trial=case.trial,
        reason=promised.reason,
    )


def _is_better(one: _PromisedFigure, other: _PromisedFigure, kind: Kind) -> bool:
    if one.share is None or other.share is None:
        return other.share is None and one.share is not None
    return one.share < other.share if better_of(kind[2]) == "lower" else one.share > other.share


# ---- sweeps and drills --------------------------------------------------------------------


def _sweeps(measured: Iterable[tuple[TrialRow, Record]], unread: list[str]) -> Iterator[Tuned]:
    for row, record in measured:
        if record.tuning is None or record.tuning.search != "sweep":
            continue
        try:
            found = tuned(TrialFolder(Path(row.path)))
        except SeatrialError as error:
            unread.append(str(error))
            continue
        if found.swept is not None:
            yield found


def _drills(
    measured: Iterable[tuple[TrialRow, Record]], cases: Iterable[CaseRuns]
) -> list[_DrilledFigure]:
    """Return the stops of each drill in its newest trial, also where it went wrong there."""
    by_trial: dict[str, list[CaseRuns]] = {}
    for case in cases:
        by_trial.setdefault(case.folder, []).append(case)
    newest: dict[tuple[str, str], list[_DrilledFigure]] = {}
    for row, record in measured:
        found: dict[tuple[str, str], list[_DrilledFigure]] = {}
        for case in by_trial.get(row.path, ()):
            stops = list(_stops(case))
            is_drill = getattr(record.tests.get(case.test), "drill", None) is not None
            if is_drill and case.excluded and not stops:
                stops = [_drilled_figure(case)]
            if stops:
                found.setdefault((case.machine, case.test), []).extend(stops)
        newest |= found
    return [each for _, figures in sorted(newest.items()) for each in figures]


def _drilled_figure(
    case: CaseRuns, probe: str = "", stops: Sequence[float] = (), good: Sequence[float] = ()
) -> _DrilledFigure:
    return _DrilledFigure(
        machine=case.machine,
        test=case.test,
        probe=probe,
        longest_stop=max(stops, default=None),
        first_good=max(good, default=None),
        n=len(stops),
        trial=case.trial,
        excluded=case.excluded,
    )


def _stops(case: CaseRuns) -> Iterator[_DrilledFigure]:
    by_name = {metric: values for (metric, _, _), values in case.values.items() if values}
    for metric, values in by_name.items():
        name, _, probe = metric.rstrip("}").partition("{probe=")
        if name == "longest_stop" and probe:
            good = by_name.get(f"first_good{{probe={probe}}}", [])
            yield _drilled_figure(case, probe, values, good)


def _loads(measured: Sequence[tuple[TrialRow, Record]], unread: list[str]) -> Iterator[_GaugeLoad]:
    """Yield the readings of each machine's gauges: of the newest of few trials that have some."""
    looked: Counter[str] = Counter()
    for row, record in reversed(measured):
        machine = record.machine.machine
        if not record.machine.all_gauges or looked[machine] >= MAX_JOURNALS:
            continue
        looked[machine] += 1
        try:
            readings = _readings(TrialFolder(Path(row.path)).journal)
        except (OSError, SeatrialError) as error:
            unread.append(str(error))
            continue
        if readings:
            looked[machine] = MAX_JOURNALS
        for gauge, values in sorted(readings.items()):
            good = [value for value in values if value is not None]
            yield _GaugeLoad(
                machine=machine,
                gauge=gauge,
                readings=len(values),
                failed=len(values) - len(good),
                least=min(good, default=None),
                median=median(good) if good else None,
                highest=max(good, default=None),
                trial=row.tag,
            )


def _readings(journal: Path) -> dict[str, list[float | None]]:
    """Return what each gauge read in a trial. Raises OSError and SeatrialError."""
    readings: dict[str, list[float | None]] = {}
    for event in read(journal):
        if isinstance(event, GaugeRead):
            readings.setdefault(event.gauge, []).append(event.value)
    return readings


# ---- the page -----------------------------------------------------------------------------


def _page(found: _FileSystems) -> Page:
    sections = [_systems(found), _promised(found), *_swept(found), *_drilled(found)]
    sections += [_loaded(found), _notes(found)]
    return Page(
        "File systems",
        [each for each in sections if each.parts],
        _summary(found),
        partial(_records_of, found),
        partial(_lines, found),
    )


def _summary(found: _FileSystems) -> str:
    missed = sum(each.value is None for each in found.figures)
    told = count(len(found.systems), "file system")
    told += f", {count(len(found.figures), 'figure')} promised"
    return f"{told}, {missed} of them {NOT_MEASURED}" if missed else told


def _systems(found: _FileSystems) -> Section:
    columns = (
        Column("machine"),
        Column("file system"),
        Column("path", fold=True),
        Column("type"),
        Column("servers", "count"),
        Column("targets", "count"),
        Column("metadata targets", "count", spare=1),
    )
    rows: list[list[Cell]] = [
        [
            *(machine, name, system.path, system.type),
            getattr(system, "servers", 0) or None,
            getattr(system, "object_targets", 0) or None,
            len(system.metadata_targets) or None,
        ]
        for machine, name, system in found.systems
    ]
    parts: list[Part] = [Table(columns, rows)] if rows else [_NONE]
    return Section("", parts)


_NONE = (
    "No trial's machine has a file system: name them under `file_systems` of the machine's file, "
    "with what was `advertised` of them."
)


def _promised(found: _FileSystems) -> Section:
    columns = (
        Column("machine"),
        Column("file system"),
        Column("figure"),
        Column("advertised"),
        Column("best found", "number"),
        Column("of advertised"),
        Column("n", "count"),
        Column("nodes", "count", spare=1),
        Column("tasks", "count", spare=1),
        Column("case", fold=True, spare=2),
        Column("trial", spare=3),
    )
    rows = [_promised_row(each) for each in found.figures]
    parts: list[Part] = [Table(columns, rows)] if rows else []
    return Section("What was promised, and the best that was found", [*parts, *_reads(found)])


def _promised_row(one: _PromisedFigure) -> list[Cell]:
    value: Cell = NOT_MEASURED if one.value is None else Figure(one.value, one.unit)
    share = one.reason if one.share is None else in_per_cent(one.share)
    here = "" if one.promised is None else show_figure(one.promised, one.unit)
    written = f"{one.advertised} = {here}" if here not in ("", one.advertised) else one.advertised
    shown = "" if one.value is None else share
    about: list[Cell] = [one.n or None, one.nodes, one.tasks, one.case]
    trial = Link(one.trial, trial_address(one.trial)) if one.trial else ""
    return [one.machine, one.file_system, one.name, written, value, shown, *about, trial]


def _reads(found: _FileSystems) -> Iterator[str]:
    """Yield what reading is of writing, where both were measured."""
    by_place = {(one.machine, one.file_system, one.name): one for one in found.figures}
    for (machine, system, name), write in by_place.items():
        reading = by_place.get((machine, system, READ))
        if name != WRITE or reading is None or not reading.value or not write.value:
            continue
        here = converted(reading.value, reading.unit, write.unit)
        if here is not None:
            share = in_per_cent(here / write.value)
            yield f"{system} of {machine}: the best reading is {share} of the best writing."


def _swept(found: _FileSystems) -> Iterator[Section]:
    columns = (
        Column("trial", fold=True),
        Column("metric"),
        Column("best", "number"),
        Column("at", fold=True),
        Column("knee", fold=True),
        Column("plateau", "count"),
        Column("tried", "text"),
        Column("ended", spare=1),
    )
    rows = [
        [Link(each.trial, trial_address(each.trial)), *_swept_row(each, best)]
        for each in found.sweeps
        if each.swept is not None
        for best in each.swept.bests
    ]
    about = (
        "The knee is the smallest point that is nearly as good as the best; `advise` tells more."
    )
    yield Section("Sweeps", [Table(columns, rows), Text(about, "quiet")] if rows else [])


def _swept_row(each: Tuned, best: SweptBest) -> list[Cell]:
    swept = each.swept
    assert swept is not None
    point = swept.point(best.best)
    return [
        best.metric,
        Figure(point.figures.get(best.metric), best.unit),
        point.name,
        swept.point(best.knee).name,
        len(best.plateau),
        f"{swept.tried} of {swept.grid}",
        f"limit of {swept.ending}" if swept.by_limit else swept.ending or "goes on",
    ]


def _drilled(found: _FileSystems) -> Iterator[Section]:
    columns = (
        Column("machine"),
        Column("drill", fold=True),
        Column("probe"),
        Column("longest stop", "seconds"),
        Column("first good after", "seconds"),
        Column("runs", "count"),
        Column("other runs", fold=True),
        Column("trial", spare=1),
    )
    rows: list[list[Cell]] = [
        [
            *(one.machine, one.test, one.probe, one.longest_stop, one.first_good, one.n or None),
            ", ".join(f"{number} {verdict}" for verdict, number in one.excluded.items()),
            Link(one.trial, trial_address(one.trial)),
        ]
        for one in found.drills
    ]
    yield Section("Drills, the newest of each", [Table(columns, rows)] if rows else [])


def _loaded(found: _FileSystems) -> Section:
    columns = (
        Column("machine"),
        Column("gauge", fold=True),
        Column("readings", "count"),
        Column("failed", "count"),
        Column("least", "number", spare=1),
        Column("median", "number"),
        Column("highest", "number"),
        Column("trial"),
    )
    rows: list[list[Cell]] = [
        [
            *(one.machine, one.gauge, one.readings, one.failed or None),
            *(one.least, one.median, one.highest, Link(one.trial, trial_address(one.trial))),
        ]
        for one in found.loads
    ]
    title = "Load, in the newest trial that read it"
    return Section(title, [Table(columns, rows)] if rows else [])


def _notes(found: _FileSystems) -> Section:
    parts: list[Part] = []
    if found.of_trials > found.trials:
        parts.append(f"Of the newest {found.trials} of {found.of_trials} trials.")
    parts += [Text(f"not read: {each}", "notice") for each in found.unread]
    if any(page.path == "/purge" for page in provided("seatrial_pages")):
        parts.append(Text("Purges have a page of their own, Purge.", "quiet", "browser"))
    return Section("", parts)


def _lines(found: _FileSystems) -> Iterator[Sequence[object]]:
    names = _PromisedFigure.__struct_fields__
    yield names
    for one in found.figures:
        yield [getattr(one, name) for name in names]


def _records_of(found: _FileSystems) -> dict[str, Any]:
    """Return what JSON shows: all but the points of sweeps, which `tune --status` has."""
    sweeps = [
        {"trial": each.trial, "machine": each.machine, "test": each.test}
        | {"ending": each.swept.ending, "tried": each.swept.tried, "grid": each.swept.grid}
        | {"best": [_best_record(each, best) for best in each.swept.bests]}
        for each in found.sweeps
        if each.swept is not None
    ]
    figures, drills, loads = msgspec.to_builtins((found.figures, found.drills, found.loads))
    of_trials = {"sweeps": sweeps, "drills": drills, "loads": loads}
    return {"figures": figures, **of_trials, "unread": found.unread}


def _best_record(each: Tuned, best: SweptBest) -> dict[str, Any]:
    assert each.swept is not None
    point, knee = each.swept.point(best.best), each.swept.point(best.knee)
    return {
        "metric": best.metric,
        "value": point.figures.get(best.metric),
        "unit": best.unit,
        "at": point.values,
        "knee": knee.values,
    }
