"""The best figure of a metric that each machine ever had, by test; and those that others gave.

    for found in metric_records(store, "write", Filters()):
        found.test, [(one.machine, one.value, one.run_id) for one in found.records], found.given

A record is one run, the best of n. The more runs there are, the better it is by chance alone, so
the median of its case stands beside it. Figures that others gave are in a list of their own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from statistics import median

from msgspec import UNSET, Struct
from msgspec.structs import replace

from seatrial.errors import UsageError, suggest
from seatrial.grouping import grouped
from seatrial.judge.promises import Beside, beside
from seatrial.model.figures import ELAPSED
from seatrial.model.identifiers import is_case, is_like
from seatrial.results.case_figures import CaseRuns, Kind
from seatrial.results.given import (
    GivenEntry,
    best_first,
    best_given,
    entries_of,
    given_cases,
    in_kind,
)
from seatrial.results.references import folders_of, promises_in
from seatrial.results.store.schema import Store
from seatrial.results.store.series import case_names, measured, metric_names
from seatrial.results.store.tables import CaseName, Filters, Measured
from seatrial.units import (
    NO_DIRECTION,
    converted,
    day_of,
    direction_text,
    listed,
    sign_of,
    times_as_good,
    unfit,
)

MAX_NAMED = 12


class MachineRecord(Struct, frozen=True, kw_only=True):
    """The best figure of a test on a machine, of ``n``. ``median`` is that of the ``runs`` of its
    case; ``ratio`` its speed over that of the best machine; ``time`` (ns) when its run started."""

    machine: str
    value: float
    time: int
    run_id: str
    trial: str
    case: str
    n: int
    median: float
    runs: int
    ratio: float | None = None
    #: what was promised of the best figure
    promised: Beside = UNSET


class TestRecords(Struct, frozen=True, kw_only=True, rename={"reason": "why"}):
    """The records of a test, the best first. ``excluded`` counts figures that could not be
    compared, by the reason; ``reason``: why there is no best."""

    test: str
    metric: str
    unit: str
    better: str
    records: list[MachineRecord] = []
    given: list[GivenEntry] = []
    excluded: dict[str, int] = {}
    reason: str = ""


def metric_records(
    store: Store, metric: str, filters: Filters, case: str = ""
) -> list[TestRecords]:
    """Return the records of each test that has the metric. ``case`` is a part of a case's name, a
    pattern, or a beginning of its id. Raises UsageError where nothing has it."""
    names = case_names(store)
    rows: dict[str, list[Measured]] = {}
    for row in measured(store, metric, filters):
        name = names[row.case]
        if is_case(case, name.name, name.case):
            rows.setdefault(name.test, []).append(row)
    given: dict[str, list[GivenEntry]] = {}
    for entry in given_like(store, metric, _given_filter(filters, case)):
        given.setdefault(entry.test, []).append(entry)
    if not (rows or given):
        raise UsageError(_nothing(store, metric))
    found = []
    for test in sorted({*rows, *given}):
        kind = _kind(store, metric, rows.get(test, []), given.get(test, []))
        found.append(_of_test(test, kind, rows.get(test, []), given.get(test, []), names))
    folders = folders_of(store)
    return [_with_promises(each, folders, names) for each in found]


def _with_promises(
    one: TestRecords, folders: Mapping[tuple[str, str], str], names: Mapping[int, CaseName]
) -> TestRecords:
    """Return records with what was promised of them, by the trials of the best figures."""
    ids = {(each.trial, each.machine, each.name): each.case for each in names.values()}
    records = []
    for record in one.records:
        folder = folders.get((record.trial, record.machine), "")
        case = ids.get((record.trial, record.machine, record.case), "")
        promises = promises_in(folder, one.test, case)
        promised = beside(promises, one.metric, record.value, one.unit)
        records.append(replace(record, promised=promised or UNSET))
    return replace(one, records=records)


def given_like(
    store: Store, metric: str, is_chosen: Callable[[CaseRuns, GivenEntry], bool]
) -> list[GivenEntry]:
    """Return the given figures of a metric that are chosen."""
    return [
        entry
        for one in given_cases(store)
        for entry in entries_of(one, metric)
        if is_chosen(one, entry)
    ]


def _given_filter(filters: Filters, case: str) -> Callable[[CaseRuns, GivenEntry], bool]:
    """Return what tells whether a given figure is among those that are asked for."""

    def is_chosen(one: CaseRuns, entry: GivenEntry) -> bool:
        return (
            is_like(entry.test, filters.test)
            and is_case(case, entry.case, one.case)
            and fnmatchcase(entry.system, filters.machine or "*")
            and fnmatchcase(one.toolchain, filters.toolchain or "*")
            and filters.trial in ("", entry.trial)
            and (not filters.since or _is_since(entry.date, filters.since))
        )

    return is_chosen


def _is_since(date: str, since: int) -> bool:
    return bool(date) and day_of(date) >= since


def _nothing(store: Store, metric: str) -> str:
    known = [*metric_names(store), ELAPSED]
    if metric in known:
        return (
            f"no run with a right answer, and no given figure, has {metric!r} under these "
            "conditions; rehearsals are asked for with --rehearsed"
        )
    remedy = suggest(metric, known) or f"there are {listed(known, MAX_NAMED)}"
    return f"no run has a metric {metric[:100]!r}; {remedy}"


def _of_test(
    test: str,
    kind: Kind,
    rows: Sequence[Measured],
    given: Sequence[GivenEntry],
    names: dict[int, CaseName],
) -> TestRecords:
    """Return the records of one test in a unit and a direction."""
    found = TestRecords(test=test, metric=kind[0], unit=kind[1], better=kind[2])
    if kind[2] not in ("higher", "lower"):
        reason = "it has no direction (better: none), so no figure is the best"
        if kind[2] != NO_DIRECTION:
            reason = "it is not known whether higher or lower is better"
        return replace(found, reason=reason, given=list(given))
    converted_rows = [_in_kind(row, kind) for row in rows]
    usable = [row for row in converted_rows if isinstance(row, Measured)]
    excluded = Counter(reason for reason in converted_rows if isinstance(reason, str))
    machines = grouped(usable, lambda row: names[row.case].machine)
    records = [_record(machine, own, names) for machine, own in machines.items()]
    records.sort(key=lambda one: -sign_of(kind[2]) * one.value)
    of_system = (replace(in_kind(entry, kind), values={"machine": entry.system}) for entry in given)
    beside = best_first(best_given(of_system, kind[2]), kind[2])
    best = records[0].value if records else 0.0
    return replace(
        found,
        records=[replace(one, ratio=_ratio(one.value, best, kind[2])) for one in records],
        given=[
            entry if entry.reason else replace(entry, ratio=_ratio(entry.value, best, kind[2]))
            for entry in beside
        ],
        excluded=dict(excluded),
    )


def _kind(store: Store, metric: str, rows: Sequence[Measured], given: Sequence[GivenEntry]) -> Kind:
    """Return the unit and the direction of the latest figure of a test. Given figures alone have
    the unit of the first, and the direction that all figures of the metric have."""
    if rows:
        return metric, rows[-1].unit, rows[-1].better
    sql = "SELECT DISTINCT better FROM metric_names WHERE name = ? AND better <> ''"
    known = [better for (better,) in store.rows(sql, (metric,))]
    return metric, given[0].unit, known[0] if len(known) == 1 else ""


def _in_kind(row: Measured, kind: Kind) -> Measured | str:
    """Return a figure in a unit, or why it cannot be compared."""
    if reason := unfit(row.value):
        return reason
    if row.better != kind[2]:
        return f"{direction_text(row.better)}, of the latest {direction_text(kind[2])}"
    value = converted(row.value, row.unit, kind[1])
    if value is None:
        return f"in {row.unit}, the latest is in {kind[1]}"
    return replace(row, value=value)


def _record(machine: str, rows: Sequence[Measured], names: dict[int, CaseName]) -> MachineRecord:
    sign = sign_of(rows[0].better)
    best = max(rows, key=lambda row: (sign * row.value, -row.time))
    name = names[best.case]
    own = [
        row.value for row in rows if names[row.case].case == name.case and row.stage == best.stage
    ]
    return MachineRecord(
        machine=machine,
        value=best.value,
        time=best.time,
        run_id=best.run_id,
        trial=name.trial,
        case=f"{name.name} [{best.stage}]" if best.stage else name.name,
        n=len(rows),
        median=median(own),
        runs=len(own),
    )


def _ratio(value: float, best: float, better: str) -> float | None:
    """Return the speed of a figure over that of the best one; None where they have no ratio."""
    return times_as_good(value, best, better) if min(value, best) > 0 else None
