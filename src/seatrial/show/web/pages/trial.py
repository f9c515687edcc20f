"""Trial: one trial: its criteria, its node-hours, its tests."""

from collections.abc import Iterator
from typing import Any

from seatrial.errors import JournalError, TrialError
from seatrial.execute.trial_record import Record
from seatrial.model.codes import CODES, KNOWN, RECALLED
from seatrial.results.status import Status, TestStatus, open_alert
from seatrial.results.store import queries
from seatrial.results.store.schema import Store
from seatrial.results.store.tables import TrialRow
from seatrial.results.store.upserts import gaps
from seatrial.show.web.page import PageQuery
from seatrial.show.web.pages.trial_plots import windows_of
from seatrial.show.web.state.server_state import ServerState
from seatrial.show.web.state.trial_cache import GAUGE, Steps
from seatrial.show.web.state.trial_fold import TrialFold
from seatrial.show.web.trials import facts_of, records_of_plan, variability_of
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
