"""The variability of a trial's tests and its outliers, made in the background.

variability_of(state, row, tailed)       # None: being judged
classes_of(state, row, tailed)           # run ids of outliers: {"tu62xsh5xrpf": "slow"}
"""

from __future__ import annotations

from collections.abc import Hashable

from msgspec import Struct

from seatrial.machine.facts import groups_of
from seatrial.statistics.suspects import Suspect
from seatrial.store.rows import Filters, TrialRow
from seatrial.store.series import outcomes
from seatrial.studies.evidence import RunKind, classified
from seatrial.studies.variability import Variability, VariabilityRow, variability
from seatrial.web.page import copied
from seatrial.web.state.server_state import ServerState
from seatrial.web.state.trial_cache import TailedTrial

MAX_JUDGED = 50_000  # runs; for more there is the command
MAX_ROWS = 400
MAX_SUSPECTS = 12
CLASSES = ("walltime", "slow", "short", "failed")


class RowShown(Struct, frozen=True, kw_only=True):
    """A metric of one kind of runs. ``cv`` is a share, ``excluded`` counts runs by reason, ``more``
    are remarks: changes of level, modes, defective nodes."""

    test: str
    kind: str
    metric: str
    unit: str
    n: int
    mean: float | None
    deviation: float | None
    cv: float | None
    median: float | None
    low: float | None
    high: float | None
    excluded: dict[str, int]
    more: list[str]


class OutliersShown(Struct, frozen=True, kw_only=True):
    """The number of outliers of a test, by class."""

    test: str
    runs: int
    classes: dict[str, int]


class VariabilityShown(Struct, frozen=True, kw_only=True):
    """The variability of a trial: ``elapsed`` has a row for each kind of runs, ``others`` are
    further metrics. ``bad`` of ``evidence`` runs went wrong; ``suspects`` explain them, or ``why``
    says why nothing is concluded. With too many runs all is empty, and ``left_to`` is the
    command to use."""

    elapsed: list[RowShown] = []
    others: list[RowShown] = []
    outliers: list[OutliersShown] = []
    suspects: list[Suspect] = []
    evidence: int = 0
    bad: int = 0
    unexplained: int = 0
    why: str = ""
    left_to: str = ""


def variability_of(
    state: ServerState, row: TrialRow, tailed: TailedTrial
) -> VariabilityShown | None:
    """Return the variability of a trial; None while it is being made."""
    if row.passed + row.failed > MAX_JUDGED:
        return VariabilityShown(left_to=f"seatrial variability {row.tag}")
    groups: dict[str, str] = {}
    if tailed.fold is not None:
        groups = groups_of(tailed.fold.record.machine)

    return tailed.latest(
        "variability", _version(row), lambda: _shown(variability(state.store(), row, groups))
    )


def classes_of(state: ServerState, row: TrialRow, tailed: TailedTrial) -> dict[str, str] | None:
    """Return the class of each outlier by its run id; None while that is being made."""

    def make() -> dict[str, str]:
        kinds = classified(outcomes(state.store(), Filters(trial=row.path)))
        return {
            outlier.run.rpartition("/")[2]: outlier.kind
            for kind in kinds
            for outlier in kind.found.outliers
        }

    return tailed.latest("classes", _version(row), make)


def _version(row: TrialRow) -> Hashable:
    """Return a version that changes with every verdict."""
    return row.row, row.passed, row.failed


def _shown(found: Variability) -> VariabilityShown:
    rows = [_row(row) for row in found.rows]
    accused = found.suspects
    return VariabilityShown(
        elapsed=[row for row in rows if row.metric == "elapsed"][:MAX_ROWS],
        others=[row for row in rows if row.metric != "elapsed"][:MAX_ROWS],
        outliers=_outliers(found.kinds),
        suspects=accused.suspects[:MAX_SUSPECTS],
        evidence=accused.runs,
        bad=accused.bad,
        unexplained=accused.unexplained,
        why=accused.why,
    )


def _row(row: VariabilityRow) -> RowShown:
    table = row.spread
    more = row.hidden
    if table.why and table.n:
        more.append(table.why)
    names = ("test", "kind", "metric", "unit", "excluded")
    return copied(RowShown, table, more=more, **{name: getattr(row, name) for name in names})


def _outliers(kinds: list[RunKind]) -> list[OutliersShown]:
    runs: dict[str, int] = {}
    classes: dict[str, dict[str, int]] = {}
    for kind in kinds:
        runs[kind.test] = runs.get(kind.test, 0) + len(kind.runs)
        of_test = classes.setdefault(kind.test, dict.fromkeys(CLASSES, 0))
        for outlier in kind.found.outliers:
            of_test[outlier.kind] += 1
    return [
        OutliersShown(test=test, runs=runs[test], classes=found)
        for test, found in classes.items()
        if any(found.values())
    ]
