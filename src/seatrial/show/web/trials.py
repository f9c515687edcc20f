"""The documents of a trial on its pages: are they as they were signed for, and what follows?

status = with_documents_now(state, row, record, status)      # as the report has it
"""

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
from seatrial.execute.trial_folder import TrialFolder
from seatrial.execute.trial_record import Record
from seatrial.hooks import load, provided
from seatrial.model.codes import KNOWN, PASS, RECALLED, code_of
from seatrial.results.criteria.mix import OverallState
from seatrial.results.evidence import (
    EvidenceStatus,
    awaited_of,
    evidence_of,
    items_of_now,
    unsound_of,
)
from seatrial.results.records import PlanRecords, records_in
from seatrial.results.slow_places import classified
from seatrial.results.status import Status, TestStatus, with_evidence, with_people
from seatrial.results.store.schema import Store
from seatrial.results.store.series import outcomes
from seatrial.results.store.tables import FAILED, PASSED, RUNNING, WAITING, Filters, TrialRow
from seatrial.results.variability import variability
from seatrial.show.page import Page, Section
from seatrial.show.variability import variability_page
from seatrial.show.web.state.server_state import ServerState
from seatrial.show.web.state.trial_cache import JudgedTrial, TailedTrial
from seatrial.show.web.study_view import PagePart
from seatrial.units import SECOND_NS


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
