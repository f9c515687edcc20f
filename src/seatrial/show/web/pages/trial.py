"""Trial: one trial: its criteria, its node-hours, its tests."""

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import asdict

from seatrial.errors import JournalError, TrialError
from seatrial.execute.trial_record import Record
from seatrial.model.codes import CODES, KNOWN, RECALLED
from seatrial.results.records import Issue, RecordedEntry
from seatrial.results.status import OpenAlert, Status, TestStatus, open_alert
from seatrial.results.store import queries
from seatrial.results.store.schema import Store
from seatrial.results.store.tables import GapRow, TrialRow
from seatrial.results.store.upserts import gaps
from seatrial.show.web.page import PageQuery
from seatrial.show.web.pages.trial_plots import WindowSpan, windows_of
from seatrial.show.web.state.server_state import ServerState
from seatrial.show.web.state.trial_cache import NodeUses, Steps, TailedTrial
from seatrial.show.web.study_view import PagePart
from seatrial.show.web.trials import TrialFacts, facts_of, records_of_plan, variability_of
from seatrial.units import count, listed

MAX_GAPS = 20
MAX_ALERTS = 20
NO_FAULT = ("again", RECALLED.name, KNOWN.name)  # of runs that ended without a fault of their own
_CODES = {code.name: code for code in CODES.values()}


class About(Struct, frozen=True, kw_only=True):
    """Who made the trial, where, of what. ``nodes`` is the number of nodes of its machine, None if
    its folder cannot be read; ``seed`` is that of a rehearsal."""

    version: str
    owner: str
    host: str
    kind: str
    suites: list[str]
    toolchains: list[str]
    nodes: int | None
    seed: int | None
    given_by: str = ""
    imported_from: str = ""


class FailureCause(Struct, frozen=True, kw_only=True):
    """The runs that ended with a verdict other than pass, by test."""

    code: int
    name: str
    meaning: str
    runs: int
    tests: list[tuple[str, int]]


class Load(Struct, frozen=True, kw_only=True):
    """The load of a metadata target, or the values of a gauge: the peak and its time (ns), the mean
    over time, and the limit (0: none)."""

    name: str
    peak: float
    peak_time: int
    mean: float
    most: float


class TrialPage(TrialFacts, frozen=True, kw_only=True):
    """A trial. What is None is being read or judged, or cannot be because its journal is not
    here."""

    about: About
    uses: NodeUses | None
    causes: list[FailureCause]
    again: int
    windows: list[WindowSpan]
    alerts: list[OpenAlert]
    reported: int
    variability: PagePart | None
    loads: list[Load] | None
    gaps: list[GapRow]
    chosen: list[str]
    people: "TrialPeople"


def data(state: ServerState, query: PageQuery) -> TrialPage:
    store = state.store()
    row = queries.trial(store, query.path["tag"])
    for name in ("from", "to"):
        query.real(name)  # the scripts of the page read these
    tailed = state.trials.of(row)
    facts = facts_of(state, row, tailed)
    tests, uses, loads = facts.tests, tailed.uses(), tailed.loads()
    alerts = tailed.fold.history.alerts[::-1] if tailed.fold is not None else []
    names = {test.test for test in tests}
    return TrialPage(
        **asdict(facts),
        about=_about(store, row, tailed),
        uses=None if uses is None else uses.whole,
        causes=_causes(tests),
        again=sum(test.verdicts.get(name, 0) for test in tests for name in NO_FAULT),
        windows=windows_of(tailed),
        alerts=[open_alert(alert, 1) for alert in alerts[:MAX_ALERTS]],
        reported=len(alerts),
        variability=variability_of(state, row, tailed),
        loads=None if loads is None else [_load(steps) for steps in loads if steps.times],
        gaps=gaps(store, row)[:MAX_GAPS],
        chosen=[name for name in query.all("test") if name in names],
        people=people_of(row, tailed.fold.record if tailed.fold else None, facts.status),
    )


def _about(store: Store, row: TrialRow, tailed: TailedTrial) -> About:
    sql = "SELECT version, owner, host FROM trials WHERE id = ?"
    ((version, owner, host),) = store.rows(sql, (row.row,))
    record = tailed.fold.record if tailed.fold is not None else None
    kind = (record.component or record.policy).kind if record else ""
    made = record.imported if record else None
    return About(
        version=version,
        owner=owner,
        host=host,
        kind=kind.replace("_", " "),
        suites=record.asked.suites if record else [],
        toolchains=list(record.machine.toolchains) if record else [],
        nodes=tailed.fold.history.nodes if tailed.fold is not None else None,
        seed=record.seed if record and record.rehearsed else None,
        given_by=record.given.by if record and record.given else "",
        imported_from=f"{made.tool}: {made.file}, imported by {made.by}" if made else "",
    )


def _causes(tests: list[TestStatus]) -> list[FailureCause]:
    """Return the causes of failures, the most frequent first."""
    names = dict.fromkeys(name for test in tests for name in test.verdicts)
    found = []
    for name in names:
        if name in ("pass", *NO_FAULT):
            continue
        code = _CODES.get(name)
        runs = {test.test: test.verdicts[name] for test in tests if name in test.verdicts}
        found.append(
            FailureCause(
                code=code.number if code else -1,
                name=name,
                meaning=code.meaning if code else "not in the registry",
                runs=sum(runs.values()),
                tests=sorted(runs.items(), key=lambda one: -one[1]),
            )
        )
    return sorted(found, key=lambda cause: -cause.runs)


def _load(steps: Steps) -> Load:
    spans = [
        (end - start, value, start)
        for start, end, value in zip(steps.times, steps.times[1:], steps.values, strict=False)
        if value is not None
    ]
    whole = sum(length for length, _, _ in spans)
    _, peak, at = max(spans, key=lambda span: span[1], default=(0.0, 0.0, steps.times[0]))
    mean = sum(length * value for length, value, _ in spans) / whole if whole else 0.0
    return Load(name=steps.name, peak=peak, peak_time=round(at * 1e9), mean=mean, most=steps.most)


MAX_NAMED = 8
MAX_SHOWN = 200


class TrialPeople(Struct, frozen=True, kw_only=True):
    """What people recorded: sentences to read first (what is awaited, what failed), the issues of
    the plan that are open, and what happened, the latest first."""

    notices: list[str] = []
    issues: list[Issue] = []
    entries: list[RecordedEntry] = []


def people_of(row: TrialRow, record: Record | None, status: Status | None) -> TrialPeople:
    """Return what people recorded about a trial's plan. ``status`` has its documents."""
    if record is None or not record.plan or record.rehearsed:
        return TrialPeople()
    try:
        found = records_of_plan(row, record)
    except (TrialError, JournalError):
        return TrialPeople(notices=["The records of its plan cannot be read."])
    return TrialPeople(
        notices=list(_notices(status)),
        issues=found.open_issues[:MAX_SHOWN],
        entries=found.entries[::-1][:MAX_SHOWN],
    )


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
