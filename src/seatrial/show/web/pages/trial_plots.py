"""The data of a trial's figures as columns of numbers; times in seconds since the epoch."""

import contextlib
import time
from itertools import chain
from typing import Any

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
from seatrial.show.web.state.trial_cache import GAUGE, TailedTrial
from seatrial.show.web.trials import classes_of
from seatrial.units import SECOND_NS

BINS = 480
MAX_BINS = 2000
MAX_POINTS = 100_000
NORMAL = "normal"
# The kind of a run by its code alone, while its test is not judged yet.
_AT_LIMIT = {codes.TIMEOUT.number: "walltime", codes.PERFORMANCE.number: "slow"}


Plot = dict[str, Any]
"""The data of a figure: its ``axis``, and whether it is ``ready``, or its data is read or made
still; pages ask again. ``windows`` are spans of time in which launches were held back or nodes were
planned to be out."""


def utilisation(state: ServerState, query: PageQuery) -> Plot:
    """Return how the nodes were used between ``since`` and ``until`` (s), in at most ``bins``
    spans of ``step`` seconds that start at ``t``: the share of the nodes in each use."""
    row, tailed = _trial(state, query)
    bins = query.number("bins", BINS, least=1, most=MAX_BINS)
    since, until = _second(query, "since"), _second(query, "until")
    uses = tailed.uses()
    times, shares, step = uses.bins(bins, since, until) if uses else ([], {}, 0.0)
    shown = {use: each for use, each in shares.items() if any(each)}
    plot = _plot(row, tailed, uses)
    return {**plot, "t": times, "step": step, "shares": shown, "meanings": USES}


def in_flight(state: ServerState, query: PageQuery) -> Plot:
    """Return the number of runs on nodes, of all tests (named ""), then the readings of gauges
    (named "gauge NAME"), then the runs of each test; with alerts."""
    row, tailed = _trial(state, query)
    chosen = query.all("test")
    flights, loads = tailed.flights(), tailed.loads()
    lines = [each for each in flights or () if not chosen or each.name in chosen or not each.name]
    gauges = [each for each in loads or () if each.times and each.name.startswith(GAUGE)]
    beside = [*lines[:1], *gauges, *lines[1:]]
    both = None if loads is None else flights
    return {**_plot(row, tailed, both), "lines": beside, "alerts": _alerts(tailed, chosen)}


def loads(state: ServerState, query: PageQuery) -> Plot:
    """Return the loads of metadata targets and the readings of gauges."""
    row, tailed = _trial(state, query)
    every = tailed.loads()
    lines = [steps for steps in every or () if steps.times]
    return {**_plot(row, tailed, every), "lines": lines, "alerts": []}


_NO_RUNS: Plot = {
    "axis": None,
    "ready": False,
    "judged": False,
    **{name: [] for name in ("tests", "kinds", "t", "y", "test", "kind", "run")},
    "left_out": 0,
    "older": 0,
}


def elapsed(state: ServerState, query: PageQuery) -> Plot:
    """Return the latest MAX_POINTS runs by the start of their scripts, of the tests ``test`` if
    given: ``t`` in seconds after the start of the axis, ``y`` their elapsed time in seconds,
    ``test`` and ``kind`` as places in ``tests`` and ``kinds``. ``left_out`` counts runs that never
    ran, ``older`` those that are too many to draw. ``judged`` is false while outliers are not known
    yet."""
    row, tailed = _trial(state, query)
    axis = _axis(row, tailed)
    chosen = sorted(set(query.all("test")))
    classes = classes_of(state, row, tailed)
    version = (row.row, row.passed, row.failed, axis["start"], classes is not None)
    name = tuple(chosen)
    kept = tailed.plots.results.get(name)
    # Points without their classes are made again as soon as the classes are known.
    waits = kept is not None and kept.value is not None and not kept.value["judged"]
    idle_factor = 0.0 if waits and classes is not None else MIN_IDLE_FACTOR
    latest = tailed.latest(
        name,
        version,
        lambda: _elapsed(state, row, chosen, axis, classes),
        tailed.plots,
        idle_factor,
    )
    return {**(latest or _NO_RUNS), "axis": axis}


def _elapsed(
    state: ServerState,
    row: TrialRow,
    chosen: list[str],
    axis: dict[str, Any],
    classes: dict[str, str] | None,
) -> Plot:
    known = elapsed_points(state.store(), row.row, chosen)
    points = [each for each in known.points if each.script_started]
    tests = list(dict.fromkeys(each.test for each in points))
    run = np.array(list(chain.from_iterable(each.run_ids for each in points)), dtype=object)
    start = np.array(list(chain.from_iterable(p.script_started for p in points)), dtype=np.int64)
    seconds = np.array(list(chain.from_iterable(each.elapsed for each in points)), dtype=float)
    test = np.repeat(
        [tests.index(each.test) for each in points], [len(p.script_started) for p in points]
    )
    ended = np.flatnonzero(np.isfinite(seconds))
    order = ended[np.argsort(start[ended], kind="stable")][-MAX_POINTS:]
    runs: list[str] = run[order].tolist()
    kinds = [NORMAL, *CLASSES]
    kind_of = {run: _AT_LIMIT.get(code, "failed") for run, code in known.odd.items()}
    kind_of |= classes or {}
    return {
        "axis": axis,
        "ready": True,
        "judged": classes is not None,
        "tests": tests,
        "kinds": kinds,
        "t": np.round(start[order] / SECOND_NS - axis["start"], 1).tolist(),
        "y": np.round(np.maximum(seconds[order], 0.0), 3).tolist(),
        "test": test[order].tolist(),
        "kind": [kinds.index(kind_of.get(run, NORMAL)) for run in runs],
        "run": runs,
        "left_out": known.never + len(run) - len(ended),
        "older": len(ended) - len(order),
    }


# ---- what they share ----------------------------------------------------------------------


def _trial(state: ServerState, query: PageQuery) -> tuple[TrialRow, TailedTrial]:
    row = queries.trial(state.store(), query.path["tag"])
    tailed = state.trials.of(row)
    tailed.standing()
    return row, tailed


def _plot(row: TrialRow, tailed: TailedTrial, data: object) -> Plot:
    """Return what the figures of what was found share."""
    return {"ready": data is not None, "axis": _axis(row, tailed), "windows": windows_of(tailed)}


def _second(query: PageQuery, name: str) -> float:
    with contextlib.suppress(BadQuery):
        seconds = query.real(name) or 0.0
        if 0 <= seconds < 1e11:
            return seconds
    text = query.text(name)[:40]
    raise BadQuery(f"{name}={text!r}: write seconds since 1970, such as 1795314122.5")


def _axis(row: TrialRow, tailed: TailedTrial) -> dict[str, Any]:
    start = (row.started or row.created) / SECOND_NS
    running = row.state == "running"
    last = (row.last or row.created) / SECOND_NS
    fold = tailed.fold
    if fold is not None and fold.history.last > 0:
        last = max(last, fold.history.last / SECOND_NS)
    end = max(last, time.time()) if running and not row.rehearsed else last
    local = time.localtime(min(max(start, 0), 1 << 35))
    ends = {"start": round(start, 3), "end": round(max(end, start), 3)}
    return {**ends, "zone": local.tm_gmtoff, "running": running}


def _alerts(tailed: TailedTrial, chosen: list[str]) -> list[dict[str, Any]]:
    fold = tailed.fold
    return [
        {"t": alert.time / SECOND_NS, "test": alert.subject, "kind": alert.kind, "text": alert.text}
        for alert in (fold.history.alerts[-500:] if fold is not None else ())
        if not chosen or alert.subject in chosen or not alert.subject
    ]


def windows_of(tailed: TailedTrial) -> list[dict[str, Any]]:
    """Return blackouts and planned outages up to now."""
    fold = tailed.fold
    if fold is None or fold.history.start is None:
        return []
    policy = fold.history.policy
    origin, last = fold.history.start / SECOND_NS, fold.history.last / SECOND_NS
    spans = []
    for kind, windows in (("blackout", policy.blackouts), ("outage", policy.outages)):
        for window in windows:
            text = f"{kind} of {policy.subject_of(window)}"
            text += f": {window.reason}" if window.reason else ""
            start, end = (at / SECOND_NS for at in window.span(fold.history.start))
            if start < last and end > origin:
                spans.append({"start": start, "end": end, "kind": kind, "text": text})
    return spans
