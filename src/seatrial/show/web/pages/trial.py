"""Trial: one trial: its criteria, its node-hours, its tests. The data of its figures, as columns of
numbers; times in seconds since the epoch. What its tuning advises. Bands: latency and bandwidth of
its pairs by level."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from seatrial.errors import JournalError, TrialError, UsageError
from seatrial.execute.trial_folder import Record, TrialFolder
from seatrial.lazy import np
from seatrial.model import codes
from seatrial.model.codes import CODES, KNOWN, RECALLED
from seatrial.model.machine_topology import known_topology
from seatrial.results.bands import bands_of, lines_of_trial
from seatrial.results.status import Status, TestStatus, open_alert
from seatrial.results.store import queries
from seatrial.results.store.schema import Store
from seatrial.results.store.series import elapsed_points
from seatrial.results.store.tables import TrialRow
from seatrial.results.store.upserts import gaps
from seatrial.results.tuned import tuned
from seatrial.results.utilisation import USES
from seatrial.show.bands import bands_page, origin_section
from seatrial.show.page import Page
from seatrial.show.tune import tuning_page
from seatrial.show.variability import CLASSES
from seatrial.show.web.caches import MIN_IDLE_FACTOR
from seatrial.show.web.page import BadQuery, PageQuery
from seatrial.show.web.pages.trials import classes_of, facts_of, records_of_plan, variability_of
from seatrial.show.web.server_state import ServerState
from seatrial.show.web.study_view import Field, StudyView, choices_of, suggested_trials, version_of
from seatrial.show.web.trial_cache import GAUGE, Steps, TailedTrial, TrialFold
from seatrial.units import SECOND_NS, count, listed

MAX_GAPS = 20
MAX_ALERTS = 20
NO_FAULT = ("again", RECALLED.name, KNOWN.name)  # of runs that ended without a fault of their own
_CODES = {code.name: code for code in CODES.values()}


def data(state: ServerState, query: PageQuery) -> dict[str, Any]:
    """Return a trial. What is None is being read or judged, or cannot be because its journal is not
    here."""
    store = state.store()
    row = queries.trial(store, query.path["tag"])
    for name in ("from", "to"):
        query.real(name)  # the scripts of the page read these
    tailed = state.trials.of(row)
    facts = facts_of(state, row, tailed)
    tests, fold = facts["tests"], tailed.fold
    uses, loads = tailed.uses(), tailed.loads()
    alerts = fold.history.alerts[::-1] if fold else []
    chosen = {test.test for test in tests}.intersection(query.all("test"))
    return {
        **facts,
        "about": _about(store, row, fold),
        "uses": None if uses is None else uses.whole,
        "causes": _causes(tests),
        "again": sum(test.verdicts.get(name, 0) for test in tests for name in NO_FAULT),
        "windows": windows_of(tailed),
        "alerts": [open_alert(alert, 1) for alert in alerts[:MAX_ALERTS]],
        "reported": len(alerts),
        "variability": variability_of(state, row, tailed),
        "loads": None if loads is None else [_load(steps) for steps in loads if steps.times],
        "gauges": _gauges_in(loads),
        "gaps": gaps(store, row)[:MAX_GAPS],
        "chosen": [name for name in query.all("test") if name in chosen],
        "people": people_of(row, fold.record if fold else None, facts["status"]),
    }


def _about(store: Store, row: TrialRow, fold: TrialFold | None) -> dict[str, Any]:
    """Return who made the trial, where, of what; as far as its folder can be read."""
    sql = "SELECT version, owner, host FROM trials WHERE id = ?"
    ((version, owner, host),) = store.rows(sql, (row.row,))
    about = {"version": version, "owner": owner, "host": host, "kind": "", "suites": []}
    about |= {"toolchains": [], "nodes": None, "seed": None, "given_by": "", "imported_from": ""}
    if fold is None:
        return about
    record, imported = fold.record, fold.record.imported
    return about | {
        "kind": (record.component or record.policy).kind.replace("_", " "),
        "suites": record.asked.suites,
        "toolchains": list(record.machine.toolchains),
        "nodes": fold.history.nodes,
        "seed": record.seed if record.rehearsed else None,
        "given_by": record.given.by if record.given else "",
        "imported_from": f"{imported.tool}: {imported.file}, imported by {imported.by}"
        if imported
        else "",
    }


def _causes(tests: list[TestStatus]) -> list[dict[str, Any]]:
    """Return the verdicts of runs that did not pass, by test, the most frequent first."""
    by_verdict: dict[str, dict[str, int]] = {}
    for test in tests:
        for name, runs in test.verdicts.items():
            if name not in ("pass", *NO_FAULT):
                by_verdict.setdefault(name, {})[test.test] = runs
    causes = [
        {
            "code": code.number if (code := _CODES.get(name)) else -1,
            "name": name,
            "meaning": code.meaning if code else "not in the registry",
            "runs": sum(runs.values()),
            "tests": sorted(runs.items(), key=lambda one: -one[1]),
        }
        for name, runs in by_verdict.items()
    ]
    return sorted(causes, key=lambda cause: -cause["runs"])


def _gauges_in(loads: list[Steps] | None) -> list[str]:
    """Return the names of the lines of gauges that were read."""
    return [each.name for each in loads or () if each.times and each.name.startswith(GAUGE)]


def _load(steps: Steps) -> dict[str, Any]:
    """Return the load of a metadata target, or the values of a gauge: the peak and its time (ns),
    the mean over time, and the limit (0: none)."""
    spans = [
        (end - start, value, start)
        for start, end, value in zip(steps.times, steps.times[1:], steps.values, strict=False)
        if value is not None
    ]
    whole = sum(length for length, _, _ in spans)
    _, peak, at = max(spans, key=lambda span: span[1], default=(0.0, 0.0, steps.times[0]))
    mean = sum(length * value for length, value, _ in spans) / whole if whole else 0.0
    load = {"name": steps.name, "peak": peak, "peak_time": round(at * SECOND_NS), "mean": mean}
    return {**load, "most": steps.most}


MAX_NAMED = 8
MAX_SHOWN = 200


def people_of(row: TrialRow, record: Record | None, status: Status | None) -> dict[str, Any]:
    """Return what people recorded about a trial's plan: sentences to read first (what is awaited,
    what failed), the issues that are open, and what happened, the latest first. ``status`` has its
    documents."""
    people: dict[str, Any] = {"notices": [], "issues": [], "entries": []}
    if record is None or not record.plan or record.rehearsed:
        return people
    try:
        records = records_of_plan(row, record)
    except (TrialError, JournalError):
        return people | {"notices": ["The records of its plan cannot be read."]}
    return {
        "notices": list(_notices(status)),
        "issues": records.open_issues[:MAX_SHOWN],
        "entries": records.entries[::-1][:MAX_SHOWN],
    }


def _notices(status: Status | None) -> Iterator[str]:
    if status is None:
        return
    if status.awaited:
        yield f"Awaited: {', '.join(status.awaited)}."
    bad = [item.id for item in status.items if item.state == "fail"]
    if bad:
        yield f"{count(len(bad), 'item')} failed: {listed(bad, MAX_NAMED)}."
    if status.unsound:
        yield f"Documents: {'; '.join(status.unsound)}."


# ---- figures -------------------------------------------------------------------------------------

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


# ---- what figures share ----------------------------------------------------------------------


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


# ---- tune ----------------------------------------------------------------------------------------


def tune(state: ServerState, query: PageQuery) -> StudyView:
    row = queries.trial(state.store(), query.path["tag"])
    folder = TrialFolder(Path(row.path))
    version = folder.journal.stat().st_size if folder.journal.exists() else 0
    study = state.studies.answer(("tune", row.tag), (version,), lambda: _read_tuning(folder))
    title = f"Tuning {row.tag}"
    view = StudyView(title=title, fields=(), trial=row.tag, rehearsed=row.rehearsed)
    return view.answered(study)


def _read_tuning(folder: TrialFolder) -> Page:
    if folder.record().policy.race is None:
        raise UsageError(f"{folder.tag} is no tuning")
    found = tuned(folder)
    return tuning_page(found, rows=len(found.settings))


# ---- bands ---------------------------------------------------------------------------------------

BANDS_ASKS = "Name a trial with runs of the probe pingpong."


def bands(state: ServerState, query: PageQuery) -> StudyView:
    tags = suggested_trials(state)
    field = Field("Trial", "trial", size=30, suggested=tags, required=True)
    choices = choices_of("trial", tags)
    view = StudyView(title="Bands", fields=[field], asks=BANDS_ASKS, choices=choices)
    name = query.text("trial")
    if not name:
        return view
    trial = queries.trial(state.store(), name)

    def judged() -> Page:
        lines, machine = lines_of_trial(state.store(), trial)
        page = bands_page(bands_of(lines, known_topology(machine)))
        return replace(page, sections=[origin_section(machine.machine, trial.tag), *page.sections])

    answer = state.studies.answer(("bands", trial.path), version_of([trial]), judged)
    return replace(view, title=f"Bands of {name}").answered(answer)
