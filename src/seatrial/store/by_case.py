"""The figures of trials, case by case, for comparisons and scaling tables: all in one read.

for found in by_case(store, trials, since, until):
    found.case, found.values[("triad", "MB/s", "higher")], found.excluded
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from seatrial.journal import codes
from seatrial.store import queries
from seatrial.store.queries import MEASURED, NO_OUTCOME
from seatrial.store.rows import CaseRow, TrialRow
from seatrial.store.schema import Store, chunks

ELAPSED = ("elapsed", "s", "lower")

Kind = tuple[str, str, str]  # a metric's name, unit and direction


class CaseRuns(Struct):
    """The runs of a case in one stage (``alone``, ``full`` or ""). ``values`` are the figures of
    runs whose answer was right (verdict pass or performance), with the seconds of their scripts as
    ``elapsed``. ``excluded`` counts the other runs by verdict, without recalled runs and those
    whose case runs again. ``runs`` are the rows of those that count."""

    trial: TrialRow
    case: CaseRow
    stage: str
    runs: list[int]
    values: dict[Kind, list[float]]
    excluded: dict[str, int]


def by_case(
    store: Store, trials: Sequence[TrialRow], since: int = 0, until: int = 0
) -> list[CaseRuns]:
    """Return what the cases of trials measured in runs that were created from ``since`` to before
    ``until`` (ns; 0: no bound), in the order of the cases. A case without such a run is there, too,
    with stage "" and nothing in it."""
    found: list[CaseRuns] = []
    for some in chunks(trials):
        found += _by_case(store, some, since, until)
    return found


def _by_case(store: Store, trials: Sequence[TrialRow], since: int, until: int) -> list[CaseRuns]:
    cases = _cases(store, trials)
    where = f"runs.trial IN ({', '.join(str(trial.row) for trial in trials)})"
    where += f" AND runs.created >= {since}" if since else ""
    where += f" AND runs.created < {until}" if until else ""
    groups: dict[tuple[int, str], CaseRuns] = {}
    of_run: dict[int, CaseRuns] = {}
    sql = f"SELECT id, case_row, code, again, elapsed, stage FROM runs WHERE {where} ORDER BY id"
    for run, case, code, again, elapsed, stage in store.rows(sql):
        if code in NO_OUTCOME:
            continue
        group = groups.get((case, stage))
        if group is None:
            group = groups[case, stage] = CaseRuns(*cases[case], stage, [], {}, {})
        if code in MEASURED:
            of_run[run] = group
            group.runs.append(run)
            if elapsed is not None:
                group.values.setdefault(ELAPSED, []).append(elapsed)
        elif not again:
            name = codes.code_of(code).name
            group.excluded[name] = group.excluded.get(name, 0) + 1
    _add_figures(store, where, of_run)
    begun = {case for case, _ in groups}
    for row, (trial, case) in cases.items():
        if row not in begun:
            groups[row, ""] = CaseRuns(trial, case, "", [], {}, {})
    return [groups[key] for key in sorted(groups)]


def _add_figures(store: Store, where: str, of_run: dict[int, CaseRuns]) -> None:
    """Add the figures. A metric of a test that is itself called elapsed replaces the script's
    time."""
    names = "SELECT id, name, unit, better FROM metric_names"
    kinds: dict[int, Kind] = {number: (n, u, b) for number, n, u, b in store.rows(names)}
    own = {number for number, kind in kinds.items() if kind[0] == ELAPSED[0]}
    replaced: set[int] = set()
    sql = (
        "SELECT run, metric, value FROM runs JOIN metrics ON run = runs.id"
        f" WHERE {where} AND runs.code IN ({', '.join(map(str, MEASURED))})"
    )
    for run, metric, value in store.rows(sql):
        group = of_run[run]
        if metric in own and id(group) not in replaced:
            replaced.add(id(group))
            group.values.pop(ELAPSED, None)
        group.values.setdefault(kinds[metric], []).append(value)


def _cases(store: Store, trials: Sequence[TrialRow]) -> dict[int, tuple[TrialRow, CaseRow]]:
    """Return the cases of trials by their row in the store."""
    result: dict[int, tuple[TrialRow, CaseRow]] = {}
    for trial in trials:
        rows = store.rows("SELECT id FROM cases WHERE trial = ? ORDER BY id", (trial.row,))
        for (row,), case in zip(rows, queries.cases_of(store, trial), strict=True):
            result[row] = (trial, case)
    return result
