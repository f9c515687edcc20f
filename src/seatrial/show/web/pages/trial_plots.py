"""The data of a trial's figures as columns of numbers; times in seconds since the epoch."""

import contextlib
import time

from msgspec import Struct
from msgspec.structs import replace

from seatrial.lazy import np
from seatrial.model import codes
from seatrial.results.store import queries
from seatrial.results.store.series import elapsed_points
from seatrial.results.store.tables import TrialRow
from seatrial.results.utilisation import USES
from seatrial.show.variability import CLASSES
from seatrial.show.web.page import BadQuery, PageQuery
from seatrial.show.web.state.caches import MIN_IDLE_FACTOR
from seatrial.show.web.state.server_state import ServerState
from seatrial.show.web.state.trial_cache import Steps, TailedTrial
from seatrial.show.web.trials import classes_of
from seatrial.units import SECOND_NS

BINS = 480
MAX_BINS = 2000
MAX_POINTS = 100_000
NORMAL = "normal"
# The kind of a run by its code alone, while its test is not judged yet.
_AT_LIMIT = {codes.TIMEOUT.number: "walltime", codes.PERFORMANCE.number: "slow"}


class TimeAxis(Struct, frozen=True, kw_only=True):
    """The span of time of a trial's figures; ``zone`` is the offset of this server's clock from UTC
    in seconds."""

    start: float
    end: float
    zone: int
    running: bool


class WindowSpan(Struct, frozen=True, kw_only=True):
    """A span of time in which launches were held back or nodes were planned to be out."""

    start: float
    end: float
    kind: str
    text: str


class Plot(Struct, frozen=True, kw_only=True):
    """A figure of a trial. ``ready`` is false while its data is read or made; pages ask again."""

    ready: bool
    axis: TimeAxis
    windows: list[WindowSpan]


class UsePlot(Plot, frozen=True, kw_only=True):
    """The share of the nodes in each use: spans of ``step`` seconds that start at ``t``."""

    t: list[float]
    step: float
    shares: dict[str, list[float | None]]
    meanings: dict[str, str]


class AlertMark(Struct, frozen=True, kw_only=True):
    """An alert."""

    t: float
    test: str
    kind: str
    text: str


class Lines(Plot, frozen=True, kw_only=True):
    """Numbers over time, with alerts."""

    lines: list[Steps]
    alerts: list[AlertMark]


class Elapsed(Struct, frozen=True, kw_only=True):
    """Runs by the start of their scripts: ``t`` in seconds after the start of the axis, ``y`` their
    elapsed time in seconds, ``test`` and ``kind`` as places in ``tests`` and ``kinds``.
    ``left_out`` counts runs that never ran, ``older`` those that are too many to draw. ``judged``
    is false while outliers are not known yet."""

    axis: TimeAxis
    ready: bool = False
    judged: bool = False
    tests: list[str] = []
    kinds: list[str] = []
    t: list[float] = []
    y: list[float] = []
    test: list[int] = []
    kind: list[int] = []
    run: list[str] = []
    left_out: int = 0
    older: int = 0


def utilisation(state: ServerState, query: PageQuery) -> UsePlot:
    """Return how the nodes were used between ``since`` and ``until`` (s), in at most ``bins``
    spans."""
    row, tailed = _trial(state, query)
    bins = query.number("bins", BINS, least=1, most=MAX_BINS)
    since, until = _second(query, "since"), _second(query, "until")
    found = tailed.uses()
    times, shares, step = found.bins(bins, since, until) if found else ([], {}, 0.0)
    return UsePlot(
        ready=found is not None,
        axis=_axis(row, tailed),
        windows=windows_of(tailed),
        t=times,
        step=step,
        shares={use: each for use, each in shares.items() if any(each)},
        meanings=USES,
    )


def in_flight(state: ServerState, query: PageQuery) -> Lines:
    """Return the number of runs on nodes, of all tests (named "") and of each."""
    row, tailed = _trial(state, query)
    chosen = query.all("test")
    found = tailed.flights()
    lines = [steps for steps in found or () if not chosen or steps.name in chosen or not steps.name]
    return Lines(
        ready=found is not None,
        axis=_axis(row, tailed),
        windows=windows_of(tailed),
        lines=lines,
        alerts=_alerts(tailed, chosen),
    )


def loads(state: ServerState, query: PageQuery) -> Lines:
    """Return the loads of metadata targets and the readings of gauges."""
    row, tailed = _trial(state, query)
    found = tailed.loads()
    lines = [steps for steps in found or () if steps.times]
    return Lines(
        ready=found is not None,
        axis=_axis(row, tailed),
        windows=windows_of(tailed),
        lines=lines,
        alerts=[],
    )


def elapsed(state: ServerState, query: PageQuery) -> Elapsed:
    """Return the elapsed times of the latest MAX_POINTS runs, of the tests ``test`` if given."""
    row, tailed = _trial(state, query)
    axis = _axis(row, tailed)
    chosen = sorted(set(query.all("test")))
    classes = classes_of(state, row, tailed)
    version = (row.row, row.passed, row.failed, axis.start, classes is not None)
    name = tuple(chosen)
    kept = tailed.plots.results.get(name)
    # Points without their classes are made again as soon as the classes are known.
    waits = kept is not None and kept.value is not None and not kept.value.judged
    idle_factor = 0.0 if waits and classes is not None else MIN_IDLE_FACTOR
    found = tailed.latest(
        name,
        version,
        lambda: _elapsed(state, row, chosen, axis, classes),
        tailed.plots,
        idle_factor,
    )
    return replace(found, axis=axis) if found else Elapsed(axis=axis)


def _elapsed(
    state: ServerState,
    row: TrialRow,
    chosen: list[str],
    axis: TimeAxis,
    classes: dict[str, str] | None,
) -> Elapsed:
    found = elapsed_points(state.store(), row.row, chosen)
    tests = list(dict.fromkeys(each.test for each in found.points if each.script_started))
    kinds = [NORMAL, *CLASSES]
    of_run = {run: _AT_LIMIT.get(code, "failed") for run, code in found.odd.items()}
    odd = {run: kinds.index(kind) for run, kind in (of_run | (classes or {})).items()}
    points = [each for each in found.points if each.script_started]
    run = np.array([run for each in points for run in each.run_ids], dtype=object)
    start = np.array([at for each in points for at in each.script_started], dtype=np.int64)
    seconds = np.array([took for each in points for took in each.elapsed], dtype=float)
    test = np.repeat(
        [tests.index(each.test) for each in points], [len(p.script_started) for p in points]
    )
    ended = np.flatnonzero(np.isfinite(seconds))
    order = ended[np.argsort(start[ended], kind="stable")][-MAX_POINTS:]
    runs: list[str] = run[order].tolist()
    return Elapsed(
        ready=True,
        judged=classes is not None,
        axis=axis,
        tests=tests,
        kinds=kinds,
        t=np.round(start[order] / SECOND_NS - axis.start, 1).tolist(),
        y=np.round(np.maximum(seconds[order], 0.0), 3).tolist(),
        test=test[order].tolist(),
        kind=[odd.get(run, 0) for run in runs],
        run=runs,
        left_out=found.never + len(run) - len(ended),
        older=len(ended) - len(order),
    )


# ---- what they share ----------------------------------------------------------------------


def _trial(state: ServerState, query: PageQuery) -> tuple[TrialRow, TailedTrial]:
    row = queries.trial(state.store(), query.path["tag"])
    tailed = state.trials.of(row)
    tailed.standing()
    return row, tailed


def _second(query: PageQuery, name: str) -> float:
    with contextlib.suppress(BadQuery):
        found = query.real(name) or 0.0
        if 0 <= found < 1e11:
            return found
    text = query.text(name)[:40]
    raise BadQuery(f"{name}={text!r}: write seconds since 1970, such as 1795314122.5")


def _axis(row: TrialRow, tailed: TailedTrial) -> TimeAxis:
    start = (row.started or row.created) / SECOND_NS
    running = row.state == "running"
    last = (row.last or row.created) / SECOND_NS
    fold = tailed.fold
    if fold is not None and fold.history.last > 0:
        last = max(last, fold.history.last / SECOND_NS)
    end = max(last, time.time()) if running and not row.rehearsed else last
    local = time.localtime(min(max(start, 0), 1 << 35))
    return TimeAxis(
        start=round(start, 3), end=round(max(end, start), 3), zone=local.tm_gmtoff, running=running
    )


def _alerts(tailed: TailedTrial, chosen: list[str]) -> list[AlertMark]:
    fold = tailed.fold
    return [
        AlertMark(t=told.time / SECOND_NS, test=told.subject, kind=told.kind, text=told.text)
        for told in (fold.history.alerts[-500:] if fold is not None else ())
        if not chosen or told.subject in chosen or not told.subject
    ]


def windows_of(tailed: TailedTrial) -> list[WindowSpan]:
    """Return blackouts and planned outages up to now."""
    fold = tailed.fold
    if fold is None or fold.history.start is None:
        return []
    policy = fold.history.policy
    origin, last = fold.history.start / SECOND_NS, fold.history.last / SECOND_NS
    found = []
    for kind, windows in (("blackout", policy.blackouts), ("outage", policy.outages)):
        for window in windows:
            text = f"{kind} of {policy.subject_of(window)}"
            text += f": {window.reason}" if window.reason else ""
            start, end = (at / SECOND_NS for at in window.span(fold.history.start))
            if start < last and end > origin:
                found.append(WindowSpan(start=start, end=end, kind=kind, text=text))
    return found
