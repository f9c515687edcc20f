"""The results of one trial for its page: where it stands, and its numbers over time.

    status_at(fold, now, driven=True)
    uses_at(fold, now).bins(600)             # utilisation by the wall clock
    flights_at(fold, now), loads_at(fold, now)

Times are seconds since the epoch, so that all figures of a page share an axis.
"""

from collections.abc import Sequence
from itertools import groupby, pairwise
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from seatrial.acceptance import lost_node_hours, step_functions
from seatrial.acceptance.criteria.result import bounds_of
from seatrial.acceptance.outages import whole_outages
from seatrial.acceptance.status import Status, holds_of, status_of
from seatrial.acceptance.step_functions import LevelSpan
from seatrial.acceptance.utilisation import USES, timeline_of
from seatrial.lazy import np
from seatrial.units import SECOND_NS
from seatrial.web.state.trial_fold import TrialFold

if TYPE_CHECKING:
    from numpy.typing import NDArray

FINEST = 8192  # bins that are kept
MAX_STEPS = 3000  # of one line


def status_at(fold: TrialFold, now: int, driven: bool) -> Status:
    """Return the status of a trial, as ``acceptance.status.status`` does from its journal."""
    found = status_of(fold.record, fold.history, now, fold.references, driven)
    held = [*fold.held(now), *holds_of(found)] if driven else holds_of(found)
    return replace(found, held_back_by=held)


# ---- how nodes were used ------------------------------------------------------------------


class NodeUses(Struct, frozen=True, kw_only=True):
    """How the nodes were used up to ``now`` (ns): the share of each use in the ``available``
    node-seconds; ``sentence`` names the largest loss."""

    now: int
    available: float
    shares: dict[str, float]
    sentence: str
    meanings: dict[str, str]


class UtilisationSteps(Struct, frozen=True):
    """How nodes were used, in the ``whole`` time and over it. ``rows`` are node-seconds, shape
    (uses, FINEST): a row for each of ``acceptance.utilisation.USES``, a column for each of FINEST
    spans of ``step`` seconds from ``first`` on."""

    whole: NodeUses
    first: float
    step: float
    rows: "NDArray[np.float64]"

    def bins(
        self, most: int, since: float = 0.0, until: float = 0.0
    ) -> tuple[list[float], dict[str, list[float | None]], float]:
        """Return the starts of at most so many spans, the share of each use in them (None where no
        node was available), and their length in seconds; of the time between ``since`` and
        ``until``, if given."""
        if self.step <= 0:
            return [], {use: [] for use in USES}, 0.0
        low = max(0, int((since - self.first) / self.step)) if since else 0
        high = self.rows.shape[1]
        if until:
            high = min(high, max(low + 1, int(np.ceil((until - self.first) / self.step))))
        low = min(low, high - 1)
        together = -(-(high - low) // most)
        sums = np.add.reduceat(self.rows[:, low:high], np.arange(0, high - low, together), axis=1)
        total = sums.sum(axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            parts = np.round(sums / total, 4)
        there = total > 0
        step = together * self.step
        starts = [round(self.first + low * self.step + i * step, 3) for i in range(len(total))]
        found: dict[str, list[float | None]] = {
            use: [float(part) if ok else None for part, ok in zip(row, there, strict=True)]
            for use, row in zip(USES, parts, strict=True)
        }
        return starts, found, step


def uses_at(fold: TrialFold, now: int) -> UtilisationSteps:
    """Return how the nodes were used up to ``now`` (ns)."""
    timeline = timeline_of(fold.history, now)
    whole = NodeUses(
        now=now,
        available=timeline.total.available / SECOND_NS,
        shares={use: timeline.total.share(use) for use in USES},
        sentence=lost_node_hours.sentence(fold.history, timeline, now),
        meanings=USES,
    )
    if not timeline.starts:
        return UtilisationSteps(whole, 0.0, 0.0, np.zeros((len(USES), 0)))
    first, last = timeline.starts[0], timeline.ends[-1]
    pieces = np.array([timeline.starts, timeline.ends], dtype=np.int64).T
    spans = (pieces - first) / SECOND_NS
    step = max((last - first) / SECOND_NS, 1e-6) / FINEST
    edges = np.arange(FINEST + 1) * step
    # The sums up to the ends of the pieces; between two pieces, in a pause, they do not grow.
    times = np.concatenate(([0.0], spans.ravel()))
    rows = np.empty((len(USES), FINEST))
    for number, use in enumerate(USES):
        nodes = np.array(timeline.nodes_in(use), dtype=float)
        grown = np.cumsum(nodes * (spans[:, 1] - spans[:, 0]))
        before = np.concatenate(([0.0], grown[:-1]))
        sums = np.concatenate(([0.0], np.column_stack((before, grown)).ravel()))
        rows[number] = np.diff(np.interp(edges, times, sums))
    return UtilisationSteps(whole, first / SECOND_NS, step, np.maximum(rows, 0.0))


# ---- runs in flight, loads of targets -----------------------------------------------------


class Steps(Struct, frozen=True, rename={"times": "t", "values": "y"}):
    """A number over time: from ``times[i]`` (s) on it was ``values[i]``, None while the trial was
    paused. In JSON these are ``t`` and ``y``. ``name`` is a test, a metadata target, a gauge, or ""
    for all. ``expected`` is the planned value (0: none), ``most`` the limit (0: none)."""

    name: str
    times: list[float]
    values: list[float | None]
    expected: float = 0.0
    most: float = 0.0


def flights_at(fold: TrialFold, now: int) -> list[Steps]:
    """Return the number of runs that held nodes, of all tests and of each."""
    history = fold.history
    by_test: dict[str, list[tuple[int, int, float]]] = {test: [] for test in fold.verdicts}
    for run in history.runs:
        held = run.held_nodes(now)
        if held is not None:
            by_test[history.test_of(run)].append((*held, 1.0))
    spans, without = history.window(now), whole_outages(history)
    everything = [one for each in by_test.values() for one in each]
    found = [_steps("", step_functions.levels(everything, spans, without), _least_of_all(fold))]
    for test in fold.tests():
        levels = step_functions.levels(by_test[test.test], spans, without)
        found.append(_steps(test.test, levels, test.expected))
    return found


def _least_of_all(fold: TrialFold) -> float:
    """Return the number of jobs in flight that a criterion on all tests asks for."""
    component = fold.record.component
    for criterion in component.criteria if component else ():
        if criterion.criterion == "jobs_in_flight" and not criterion.tests:
            return bounds_of(criterion).least or 0.0
    return 0.0


def loads_at(fold: TrialFold, now: int) -> list[Steps]:
    """Return the open files on each metadata target that a run was placed on, then the readings of
    gauges."""
    safe = _safe_loads(fold)
    found = [
        _steps(name, each, most=safe.get(name, 0.0))
        for name, each in step_functions.target_loads(fold.history, now).items()
    ]
    highs = {throttle.gauge: throttle.high for throttle in fold.history.policy.throttles}
    for name, readings in fold.gauges.items():
        each = [
            LevelSpan(time, following, value)
            for (time, value), (following, _) in pairwise([*readings, readings[-1]])
            if value is not None
        ]
        found.append(_steps(f"gauge {name}", each, most=highs.get(name, 0.0)))
    return found


def _safe_loads(fold: TrialFold) -> dict[str, float]:
    """Return the safe load of each target, by the plan or else by the machine's description."""
    systems = fold.record.machine.file_systems
    found = {
        f"{name}/{target.name}": system.safe_load
        for name, system in systems.items()
        for target in system.metadata_targets
    }
    capped = {target.name: target.safe for target in fold.history.policy.targets}
    return found | {name: safe for name, safe in capped.items() if safe}


def _steps(
    name: str, found: Sequence[LevelSpan], expected: float = 0.0, most: float = 0.0
) -> Steps:
    """Return levels as steps, with None in the gaps between them."""
    found = _thinned(found)
    times: list[float] = []
    values: list[float | None] = []
    last = None
    for start, end, value in found:
        if last is not None and start > last:
            times.append(round(last / SECOND_NS, 3))
            values.append(None)
        times.append(round(start / SECOND_NS, 3))
        values.append(value)
        last = end
    if last is not None:
        times.append(round(last / SECOND_NS, 3))
        values.append(values[-1])
    return Steps(name, times, values, expected, most)


def _thinned(found: Sequence[LevelSpan]) -> Sequence[LevelSpan]:
    """Return few enough levels to draw: the least and the largest of each of many equal spans."""
    if len(found) <= MAX_STEPS:
        return found
    first, length = found[0].start, found[-1].end - found[0].start
    kept: list[LevelSpan] = []
    for _, group in groupby(found, lambda level: (level.start - first) * MAX_STEPS // 3 // length):
        own = list(group)
        kept += sorted({min(own, key=_value), max(own, key=_value), own[-1]})
    ends = [level.start for level in kept[1:]] + [found[-1].end]
    gaps = {level.end for level, after in pairwise(found) if after.start > level.end}
    return [
        level if level.end in gaps else LevelSpan(level.start, end, level.value)
        for level, end in zip(kept, ends, strict=True)
    ]


def _value(level: LevelSpan) -> float:
    return level.value
