"""The variability of a trial's tests and its outliers, made in the background.

variability_of(state, row, tailed)       # None: being judged
classes_of(state, row, tailed)           # run ids of outliers: {"tu62xsh5xrpf": "slow"}
"""

from collections import Counter
from collections.abc import Hashable

from msgspec import Struct
from msgspec.structs import replace

from seatrial.statistics.spread import Spread
from seatrial.statistics.suspects import Suspects
from seatrial.store.rows import Filters, TrialRow
from seatrial.store.series import outcomes
from seatrial.structs import copied
from seatrial.studies.evidence import RunKind, classified
from seatrial.studies.slow_places import PlaceTrend
from seatrial.studies.variability import Variability, VariabilityRow, variability
from seatrial.web.state.server_state import ServerState
from seatrial.web.state.trial_cache import TailedTrial

MAX_JUDGED = 50_000  # runs; for more there is the command
MAX_ROWS = 400
MAX_SUSPECTS = 12
CLASSES = ("walltime", "slow", "short", "failed")


class RowShown(Struct, frozen=True, kw_only=True):
    """A metric of one kind of runs. ``excluded`` counts runs by reason, ``more`` are remarks:
    changes of level, modes, defective nodes."""

    test: str
    kind: str
    metric: str
    unit: str
    spread: Spread
    excluded: dict[str, int]
    more: list[str]


class OutliersShown(Struct, frozen=True, kw_only=True):
    """The number of outliers of a test, by class."""

    test: str
    runs: int
    classes: dict[str, int]


class VariabilityShown(Struct, frozen=True, kw_only=True):
    """The variability of a trial: ``elapsed`` has a row for each kind of runs, ``others`` are
    further metrics, ``places`` tell which times go with where nodes were in the network. With too
    many runs all is empty, and ``left_to`` is the command to use."""

    elapsed: list[RowShown] = []
    others: list[RowShown] = []
    outliers: list[OutliersShown] = []
    suspects: Suspects | None = None
    places: list[PlaceTrend] = []
    places_questions: int = 0
    left_to: str = ""


def variability_of(
    state: ServerState, row: TrialRow, tailed: TailedTrial
) -> VariabilityShown | None:
    """Return the variability of a trial; None while it is being made."""
    if row.passed + row.failed > MAX_JUDGED:
        return VariabilityShown(left_to=f"seatrial variability {row.tag}")
    machine = tailed.fold.record.machine if tailed.fold is not None else None
    return tailed.latest(
        "variability", _version(row), lambda: _shown(variability(state.store(), row, machine))
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
    return VariabilityShown(
        elapsed=[row for row in rows if row.metric == "elapsed"][:MAX_ROWS],
        others=[row for row in rows if row.metric != "elapsed"][:MAX_ROWS],
        outliers=_outliers(found.kinds),
        suspects=replace(found.suspects, suspects=found.suspects.suspects[:MAX_SUSPECTS]),
        places=found.places.trends[:MAX_SUSPECTS],
        places_questions=found.places.questions,
    )


def _row(row: VariabilityRow) -> RowShown:
    more = row.hidden
    if row.spread.why and row.spread.n:
        more.append(row.spread.why)
    return copied(RowShown, row, more=more)


def _outliers(kinds: list[RunKind]) -> list[OutliersShown]:
    runs: Counter[str] = Counter()
    classes: dict[str, Counter[str]] = {}
    for kind in kinds:
        runs[kind.test] += len(kind.runs)
        of_test = classes.setdefault(kind.test, Counter())
        of_test.update(outlier.kind for outlier in kind.found.outliers)
    return [
        OutliersShown(test=test, runs=runs[test], classes={name: found[name] for name in CLASSES})
        for test, found in classes.items()
        if found
    ]
