"""Data that the pages Now and Trial share: status, builds, tests, and what cannot be read.

facts = facts_of(state, row, tailed)
copied(TrialPage, facts, ...)
"""

import contextlib
import os
from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from msgspec import Struct

from seatrial.acceptance.status import Status, TestStatus
from seatrial.errors import SeatrialError
from seatrial.journal.codes import KNOWN, PASS, RECALLED, code_of
from seatrial.sinks.lag import SinkLag, sink_lags
from seatrial.store.rows import TrialRow
from seatrial.store.schema import Store
from seatrial.store.tables import FAILED, PASSED, RUNNING, WAITING
from seatrial.trial.folder import TrialFolder
from seatrial.units import SECOND_NS
from seatrial.web.state.server_state import ServerState
from seatrial.web.state.trial_cache import Standing, TailedTrial
from seatrial.web.trials.trial_documents import with_documents_now

MAX_BUILDS = 40
MAX_NAMED = 6


class TrialFacts(Struct, frozen=True, kw_only=True):
    """A trial on the pages Now and Trial. ``standing`` is None while its journal is read for the
    first time (of which ``share_read`` is done) or cannot be read (``trouble``); ``status`` is None
    while it is judged."""

    trial: TrialRow
    standing: Standing | None
    status: Status | None
    tests: list[TestStatus]
    builds: "Builds"
    sinks: list[SinkLag]
    share_read: float
    trouble: str


def facts_of(state: ServerState, row: TrialRow, tailed: TailedTrial) -> TrialFacts:
    """Return what is known of a trial."""
    store, standing = state.store(), tailed.standing()
    record = tailed.fold.record if tailed.fold is not None else None
    sinks: list[SinkLag] = []
    with contextlib.suppress(SeatrialError, OSError):
        sinks = sink_lags(TrialFolder(Path(row.path)))
    return TrialFacts(
        trial=row,
        standing=standing,
        status=with_documents_now(state, row, record, tailed.status()),
        tests=standing.tests if standing and not tailed.trouble else tests_of_store(store, row),
        builds=builds_of(store, row),
        sinks=sinks,
        share_read=tailed.share_read,
        trouble=trouble_of(store, row, tailed),
    )


# ---- builds -------------------------------------------------------------------------------


class BuildShown(Struct, frozen=True):
    """A build and the tests that use it; ``state`` is building, built or failed."""

    key: str
    tests: list[str]
    state: str
    started: int | None
    seconds: float | None
    path: str
    text: str


class Builds(Struct, frozen=True, kw_only=True):
    """The number of builds in each state; ``shown`` are those that are not built."""

    built: int
    building: int
    failed: int
    shown: list[BuildShown]


def builds_of(store: Store, row: TrialRow) -> Builds:
    """Return the builds of a trial."""
    sql = "SELECT key, path, started, ended, value, text FROM builds WHERE trial = ?"
    found = []
    for key, path, started, ended, value, text in store.rows(sql, (row.row,)):
        state = "building" if ended is None else "failed" if value else "built"
        seconds = None if started is None or ended is None else (ended - started) / SECOND_NS
        found.append(BuildShown(key, [], state, started, seconds, path, text))
    open_ones = [one for one in found if one.state != "built"][:MAX_BUILDS]
    if open_ones:
        names = _tests_of_builds(store, row)
        for one in open_ones:
            one.tests.extend(names.get(one.key, [])[:MAX_NAMED])
    states = Counter(one.state for one in found)
    return Builds(
        built=states["built"],
        building=states["building"],
        failed=states["failed"],
        shown=sorted(open_ones, key=lambda one: (one.state, -(one.started or 0))),
    )


def _tests_of_builds(store: Store, row: TrialRow) -> dict[str, list[str]]:
    sql = (
        "SELECT DISTINCT cases.build, tests.name FROM cases LEFT JOIN tests"
        " ON tests.id = cases.test WHERE cases.trial = ? ORDER BY 1, 2"
    )
    rows = groupby(store.rows(sql, (row.row,)), itemgetter(0))
    return {key: [test for _, test in own] for key, own in rows}


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
            in_flight=found["waiting"] + found["running"],
            running=found["running"],
            expected=0,
            accepted=found["pass"],
            verdicts={
                name: number
                for name, number in found.most_common()
                if name not in ("waiting", "running")
            },
            stopped="",
        )
        for name, found in sorted(counts.items())
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
