"""Now: the trials that run, and those that ended last. Trials: all that match the filters, newest
first. Then what pages show of any trial: its facts, its documents as they are now, its
variability."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Hashable, Iterator
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from seatrial.errors import JournalError, SeatrialError, TrialError
from seatrial.execute.plan_trials import records
from seatrial.execute.trial_folder import Record, TrialFolder
from seatrial.hooks import load, provided
from seatrial.model.codes import KNOWN, PASS, RECALLED, code_of
from seatrial.results.criteria.mix import OverallState
from seatrial.results.records import (
    EvidenceStatus,
    PlanRecords,
    awaited_of,
    evidence_of,
    items_of_now,
    records_in,
    unsound_of,
)
from seatrial.results.slow_places import classified
from seatrial.results.status import Status, TestStatus, with_evidence, with_people
from seatrial.results.store import queries
from seatrial.results.store.schema import Store, marks
from seatrial.results.store.series import outcomes
from seatrial.results.store.tables import (
    FAILED,
    PASSED,
    RUNNING,
    WAITING,
    Filters,
    RunRow,
    TrialRow,
)
from seatrial.results.variability import variability
from seatrial.show.page import Page, Section
from seatrial.show.variability import variability_page
from seatrial.show.web.page import PageQuery
from seatrial.show.web.server_state import ServerState
from seatrial.show.web.study_view import PagePart
from seatrial.show.web.trial_cache import JudgedTrial, TailedTrial
from seatrial.units import SECOND_NS

LATELY = 12
MAX_RUNNING = 8  # that are shown in full
LATEST_RUNS = 8


def now(state: ServerState, query: PageQuery) -> dict[str, Any]:
    trials = queries.trials(state.store())
    running = [row for row in trials if row.state == "running"]
    return {
        "running": [_running(state, row) for row in running[:MAX_RUNNING]],
        "lately": [_late(state, row) for row in _latest_others(trials)],
        "trials": len(trials),
        "rehearsals": sum(row.rehearsed for row in trials),
        "more": max(0, len(running) - MAX_RUNNING),  # that run, and are not shown
        "folder": str(state.folder),
    }


def _latest_others(trials: list[TrialRow]) -> list[TrialRow]:
    """Return the latest trials that do not run, the latest first."""
    others = [row for row in trials if row.state != "running"]
    shown = [row for row in others if not row.rehearsed] or others
    shown.sort(key=lambda row: row.created if row.rehearsed else row.last or row.created)
    return shown[: -LATELY - 1 : -1]


def _late(state: ServerState, row: TrialRow) -> dict[str, Any]:
    """Return a trial with its verdict by its criteria, "" if it has none, None if it is not known
    yet."""
    if not row.component:
        return {"trial": row, "verdict": "", "verdict_words": ""}
    judged = state.trials.verdict(row)
    verdict, words = verdict_now(state, row, judged) if judged else (None, "")
    return {"trial": row, "verdict": verdict, "verdict_words": words}


def _running(state: ServerState, row: TrialRow) -> dict[str, Any]:
    """Return a trial that runs, and the runs that were judged last."""
    facts = facts_of(state, row, state.trials.of(row))
    standing = facts["standing"]
    judged = standing.judged if standing else []
    return {**facts, "latest": _latest(state.store(), row, judged)}


def _latest(store: Store, row: TrialRow, judged: list[str]) -> list[RunRow]:
    """Return the runs that were judged last; before there are any, those that were created last."""
    if not judged:
        return queries.runs(store, Filters(trial=row.path, limit=LATEST_RUNS))
    where = f"WHERE runs.run_id IN ({marks(len(judged))}) AND runs.trial = ?"
    runs = queries.run_rows(store, where, [*judged, row.row], queries.NEWEST)
    over = [run for run in runs if run.judged is not None]  # the store may be a moment behind
    return sorted(over, key=lambda run: run.judged or 0, reverse=True)


# ---- trials --------------------------------------------------------------------------------------

SHOWN = 200
MAX_SHOWN = 5000
STATES = ("running", "paused", "interrupted", "cancelled", "ended", "abandoned", "imported", "new")


def trials(state: ServerState, query: PageQuery) -> dict[str, Any]:
    known = queries.trials(state.store())
    chosen = query.texts("machine", "plan") | {"state": query.choice("state", STATES)}
    rehearsed = query.choice("rehearsed", ("no", "also", "only"))
    limit = query.number("limit", SHOWN, least=1, most=MAX_SHOWN)
    fitting = _fitting(known, query.text("q").lower(), chosen)
    shown = _of_kind(fitting, rehearsed)
    states = {row.state for row in known}
    return {
        "trials": shown[:limit],
        "found": len(shown),
        "left_out": 0 if rehearsed else len(fitting) - len(shown),
        # the choices of the filters
        "machines": sorted({row.machine for row in known}),
        "plans": sorted({row.plan for row in known if row.plan}),
        "states": [state for state in STATES if state in states],
        "rehearsals": sum(row.rehearsed for row in known),
    }


def _of_kind(trials: list[TrialRow], rehearsed: str) -> list[TrialRow]:
    """Return the trials without rehearsals, with them, or these alone. Unless that was asked,
    rehearsals are shown if there is nothing else."""
    if rehearsed == "also":
        return trials
    of_kind = [row for row in trials if row.rehearsed == (rehearsed == "only")]
    return of_kind if rehearsed else of_kind or trials


def _fitting(known: list[TrialRow], word: str, chosen: dict[str, str]) -> list[TrialRow]:
    """Return the trials with a word in their tag, and with what was chosen of them."""
    wanted = {name: value for name, value in chosen.items() if value}
    return [
        row
        for row in known
        if word in row.tag.lower()
        and all(getattr(row, name) == value for name, value in wanted.items())
    ]


# ---- documents -----------------------------------------------------------------------------------
#
# The documents of a trial: are they as they were signed for, and what follows?
#
#     status = with_documents_now(state, row, record, status)      # as the report has it


def records_of_plan(row: TrialRow, record: Record) -> PlanRecords:
    """Return what people recorded about the plan of a trial. Raises JournalError, TrialError."""
    return records_in(records(Path(row.path).parent, record.plan))


def with_documents_now(
    state: ServerState, row: TrialRow, record: Record | None, status: Status | None
) -> Status | None:
    """Return a status with the documents of a trial's component and of its items."""
    if status is None or record is None or not record.plan or record.rehearsed:
        return status
    items = items_of_now(status.items, _home(record), state.documents.state_of)
    return with_evidence(replace(status, items=items), _evidence(state, row, record))


def verdict_now(state: ServerState, row: TrialRow, judged: JudgedTrial) -> tuple[OverallState, str]:
    """Return the verdict of a trial and its words, as its documents are now."""
    overall, record = judged.overall, judged.record
    items = items_of_now(judged.items, _home(record), state.documents.state_of)
    evidence = _evidence(state, row, record)
    unsound, awaited = unsound_of(items, evidence), awaited_of(items, evidence)
    return with_people(overall.state, overall.words, unsound, awaited)


def _home(record: Record) -> Path:
    return Path(record.plan_file).parent


def _evidence(state: ServerState, row: TrialRow, record: Record) -> list[EvidenceStatus]:
    written = record.component.evidence if record.component else []
    if not written:
        return []
    try:
        given = records_of_plan(row, record).given
    except (TrialError, JournalError):
        given = {}
    return evidence_of(written, given, _home(record), state.documents.state_of)


# ---- trial facts ---------------------------------------------------------------------------------
#
# Data that the pages Now and Trial share: status, builds, tests, and what cannot be read.


MAX_BUILDS = 40
MAX_NAMED = 6


def facts_of(state: ServerState, row: TrialRow, tailed: TailedTrial) -> dict[str, Any]:
    """Return what is known of a trial. ``standing`` is None while its journal is read for the first
    time (of which ``share_read`` is done) or cannot be read (``trouble``); ``status`` is None while
    it is judged."""
    store, standing = state.store(), tailed.standing()
    record = tailed.fold.record if tailed.fold is not None else None
    sinks: list[Any] = []
    with contextlib.suppress(SeatrialError, OSError):
        for delivery in provided("seatrial_deliveries"):
            sinks += load(delivery.lags)(TrialFolder(Path(row.path)))
    return {
        "trial": row,
        "standing": standing,
        "status": with_documents_now(state, row, record, tailed.status()),
        "tests": standing.tests if standing and not tailed.trouble else tests_of_store(store, row),
        "builds": builds_of(store, row),
        "sinks": sinks,
        "share_read": tailed.share_read,
        "trouble": trouble_of(store, row, tailed),
    }


# ---- builds -------------------------------------------------------------------------------


def builds_of(store: Store, row: TrialRow) -> dict[str, Any]:
    """Return the number of builds of a trial in each state, and those that are not built with the
    tests that use them."""
    sql = "SELECT key, path, started, ended, value, text FROM builds WHERE trial = ?"
    builds = [_build(*each) for each in store.rows(sql, (row.row,))]
    states = Counter(build["state"] for build in builds)
    shown = [build for build in builds if build["state"] != "built"][:MAX_BUILDS]
    names = _tests_of_builds(store, row) if shown else {}
    for build in shown:
        build["tests"] += names.get(build["key"], [])[:MAX_NAMED]
    shown.sort(key=lambda build: (build["state"], -(build["started"] or 0)))
    counts = {state: states[state] for state in ("built", "building", "failed")}
    return {**counts, "shown": shown}


def _build(
    key: str, path: str, started: int | None, ended: int | None, value: float, text: str
) -> dict[str, Any]:
    state = "building" if ended is None else "failed" if value else "built"
    seconds = None if started is None or ended is None else (ended - started) / SECOND_NS
    build: dict[str, Any] = {"key": key, "tests": [], "state": state, "started": started}
    return {**build, "seconds": seconds, "path": path, "text": text}


def _tests_of_builds(store: Store, row: TrialRow) -> dict[str, list[str]]:
    sql = (
        "SELECT DISTINCT cases.build, tests.name FROM cases LEFT JOIN tests"
        " ON tests.id = cases.test WHERE cases.trial = ? ORDER BY 1, 2"
    )
    rows = groupby(store.rows(sql, (row.row,)), itemgetter(0))
    return {key: [test for _, test in tests] for key, tests in rows}


# ---- tests --------------------------------------------------------------------------------


def tests_of_store(store: Store, row: TrialRow) -> list[TestStatus]:
    """Return how the tests of a trial stand by the store, for when its journal cannot be read."""
    names: dict[int, str] = dict(store.rows("SELECT id, name FROM tests"))
    counts: dict[str, Counter[str]] = {}
    for test, state, code, number in _counted(store, row):
        name = names[test]
        named = state == FAILED or code in (RECALLED.number, KNOWN.number)
        verdict = code_of(code).name if named else "again"
        verdict = {WAITING: "waiting", RUNNING: "running", PASSED: "pass"}.get(state, verdict)
        counts.setdefault(name, Counter())[verdict] += number
    return [
        TestStatus(
            test=name,
            in_flight=tally["waiting"] + tally["running"],
            running=tally["running"],
            expected=0,
            accepted=tally["pass"],
            verdicts={
                name: number
                for name, number in tally.most_common()
                if name not in ("waiting", "running")
            },
            stopped="",
        )
        for name, tally in sorted(counts.items())
    ]


def _counted(store: Store, row: TrialRow) -> Iterator[tuple[int, int, int, int]]:
    """Yield how many runs of each test, state and code a trial has. The passed ones, which are
    most, are all runs of a test (counted by an index) less the others."""
    tests = "SELECT DISTINCT test FROM cases WHERE trial = ?"
    sql = (
        f"SELECT test, state, code, count(*) FROM runs WHERE trial = ? AND state <> {PASSED}"
        " GROUP BY test, state, code"
    )
    every = "SELECT count(*) FROM runs WHERE test = ? AND trial = ?"
    with store.reading():
        passed = {test: 0 for (test,) in store.rows(tests, (row.row,))}
        for test in passed:
            passed[test] = store.rows(every, (test, row.row))[0][0]
        for test, state, code, number in store.rows(sql, (row.row,)):
            passed[test] -= number
            yield test, state, code, number
    yield from ((test, PASSED, PASS.number, number) for test, number in passed.items() if number)


# ---- where it is --------------------------------------------------------------------------


def trouble_of(store: Store, row: TrialRow, tailed: TailedTrial) -> str:
    """Return why a trial's journal cannot be read here and what that means, "" if it can."""
    if not tailed.trouble:
        return ""
    (found,) = store.rows("SELECT host, owner FROM trials WHERE id = ?", (row.row,))
    host, owner = found
    here = os.uname().nodename
    if not Path(row.path).exists():
        where = f"{row.path} is not there"
        if host and host != here:
            where = f"{row.path} is on {host} ({owner}), and cannot be seen from {here}"
        return (
            f"The folder of this trial cannot be read: {where}. What is shown is what the store "
            "knows; utilisation, loads and criteria, which are judged from the journal, are left "
            "out, or are as they were judged before."
        )
    return f"The journal of this trial cannot be read: {tailed.trouble}"


# ---- trial variability ---------------------------------------------------------------------------
#
# The variability of a trial's tests and its outliers, made in the background.
#
#     variability_of(state, row, tailed)       # None: being judged
#     classes_of(state, row, tailed)           # run ids of outliers: {"tu62xsh5xrpf": "slow"}


MAX_JUDGED = 50_000  # runs; for more there is the command


def variability_of(state: ServerState, row: TrialRow, tailed: TailedTrial) -> PagePart | None:
    """Return the variability of a trial; None while it is being made."""
    if row.passed + row.failed > MAX_JUDGED:
        command = f"seatrial variability {row.tag}"
        words = f"These are too many runs to be judged beside a page: `{command}` does."
        return PagePart(Page("", [Section("", [words])], records=lambda: {"left_to": command}))
    machine = tailed.fold.record.machine if tailed.fold is not None else None

    def make() -> PagePart:
        return PagePart(variability_page(variability(state.store(), row, machine)))

    return tailed.latest("variability", _version(row), make)


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
