"""Where a component of a plan stands: what people ask while it runs, and when it is over.

status(record, cases, events)        # of one trial; `seatrial accept status` shows them
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from seatrial.conduct.policy import Entry
from seatrial.journal.events import Event
from seatrial.judge.accounts import NEVER, Accounts, Run
from seatrial.judge.criteria import Overall, Result, View, judged, overall
from seatrial.judge.holds import Hold, Holds
from seatrial.judge.sub_phases import INTERRUPTED, TURNS, SubPhase, sub_phases
from seatrial.judge.tallies import open_alerts, verdicts
from seatrial.judge.timeline import Bin
from seatrial.machine.facts import fold, node_names
from seatrial.machine.model import Machine
from seatrial.plan.model import Component
from seatrial.plan.policy import width_of_machine, widths_of
from seatrial.suite.model import Case
from seatrial.trial.folder import Record, references_of
from seatrial.units import SECOND_NS
from seatrial.verify.references import References

BINS = 48


class Part(Struct, frozen=True, kw_only=True):
    """How a test stands. ``in_flight`` are its runs that the scheduler has, ``running`` those of
    them that hold nodes; ``expected`` is what the plan keeps in flight, 0 where it says nothing;
    ``verdicts`` counts the runs that ended. ``stopped`` is why it is launched no more, or ""."""

    test: str
    in_flight: int
    running: int
    expected: int
    accepted: int
    verdicts: dict[str, int]
    stopped: str


class OpenAlert(Struct, frozen=True, kw_only=True):
    """An alert that was told so lately that it would be told again if it held no more. ``times`` is
    how often it was told; ``time`` in ns, of the last."""

    time: int
    kind: str
    subject: str
    text: str
    times: int


class Status(Struct, frozen=True, kw_only=True):
    """Where one trial of a plan stands, at ``now`` (ns). ``clock`` and ``duration`` in seconds, 0
    for a duration that is not limited; ``utilisation`` is None before node-hours were available;
    ``over_time`` has its course; ``sub_phases`` are the stretches between its pauses and
    interruptions; ``excluded`` gives nodes and why. ``criteria`` are the results of
    each criterion, the one on all that it is about first. ``held_back_by`` is what keeps launches
    back now: gauges, blackouts, excluded nodes, tests that are stopped or cannot be built."""

    tag: str
    plan: str
    component: str
    phase: str
    kind: str
    rehearsed: bool
    state: str
    verdict: Overall
    now: int
    clock: float
    duration: float
    nodes: int
    down: str
    utilisation: float | None
    over_time: list[tuple[float, float]]
    sub_phases: list[SubPhase]
    parts: list[Part]
    alerts: list[OpenAlert]
    excluded: list[tuple[str, str]]
    criteria: list[list[Result]]
    held_back_by: list[Hold] = []


def status(
    record: Record,
    cases: Sequence[Case],
    events: Iterable[Event],
    now: int | None = None,
    driven: bool = True,
    accounts: Accounts | None = None,
) -> Status:
    """Where a trial stands by its journal. ``now`` is the present for one that is running, else the
    time of its last event. One that is not ``driven`` was interrupted if its journal does not say
    that it stopped. Empty ``accounts`` of the trial are filled, for who has more to ask of them."""
    accounts = accounts or accounts_of(record, cases)
    holds = Holds(record.policy, cases)
    turns: list[Event] = []
    for event in events:
        accounts.apply(event)
        holds.apply(event)
        if event.event in TURNS:
            turns.append(event)
    running = accounts.state == "running" and not record.rehearsed
    if now is None:
        now = time.time_ns() if running else accounts.last
    now = max(now, accounts.last, 0)
    found = status_of(record, accounts, turns, now, references_of(record))
    held = holds.held(now) if accounts.state == "running" and driven else []
    state = found.state if driven or accounts.state != "running" else INTERRUPTED
    return replace(found, state=state, held_back_by=[*held, *_kept_back(found), *holds.unbuilt()])


def accounts_of(record: Record, cases: Sequence[Case]) -> Accounts:
    """Empty accounts for a trial, on the nodes that its machine has."""
    return Accounts(cases, record.policy, node_names(record.machine))


def status_of(
    record: Record,
    accounts: Accounts,
    turns: Sequence[Event],
    now: int,
    references: References | None = None,
) -> Status:
    """As ``status``, for accounts at hand; ``turns`` are the events that cut sub-phases."""
    component = record.component or Component(component="", kind=accounts.policy.kind)
    view = View(accounts, now, references)
    results = judged(component, view)
    total = view.timeline.total
    return Status(
        tag=record.tag,
        plan=record.plan,
        component=component.component,
        phase=record.phase,
        kind=component.kind,
        rehearsed=record.rehearsed,
        state=accounts.state,
        verdict=overall(results),
        now=now,
        clock=accounts.clock(now),
        duration=accounts.duration,
        nodes=accounts.nodes,
        down=fold(sorted(down.node for down in accounts.downs if down.end == NEVER)),
        utilisation=total.share("accepted") if total.available else None,
        over_time=[_point(one) for one in view.timeline.bins(BINS) if one.use.available],
        sub_phases=sub_phases(turns, accounts.runs, now),
        parts=_parts(accounts, record.machine),
        alerts=_open_alerts(accounts, now),
        excluded=_excluded(accounts),
        criteria=results,
    )


def _kept_back(found: Status) -> list[Hold]:
    """Excluded nodes and stopped tests."""
    nodes = [
        Hold(kind="excluded", what=nodes, text=f"{nodes}: {why}") for nodes, why in found.excluded
    ]
    tests = [
        Hold(kind="stopped", what=part.test, text=f"{part.test}: {part.stopped}")
        for part in found.parts
        if part.stopped
    ]
    return [*nodes, *tests]


def _point(one: Bin) -> tuple[float, float]:
    return one.end, one.use.share("accepted")


def _parts(accounts: Accounts, machine: Machine) -> list[Part]:
    policy = accounts.policy
    tallied = verdicts(accounts)
    in_flight: dict[str, list[Run]] = {test: [] for test in tallied}
    for run in accounts.runs:
        if run.submitted != NEVER and run.ended == NEVER and not run.over:
            in_flight[accounts.test_of(run)].append(run)
    widths, whole = widths_of(accounts.cases, machine), width_of_machine(machine)
    entries: dict[str, Entry] = {}
    for number, case in enumerate(accounts.cases):
        if number < len(policy.entry_of):
            entries[case.test] = policy.entries[policy.entry_of[number]]
    return [
        Part(
            test=test,
            in_flight=len(in_flight[test]),
            running=sum(run.started != NEVER or run.began != NEVER for run in in_flight[test]),
            expected=0
            if test in accounts.stopped
            else _expected(accounts, entries.get(test), widths[test], whole),
            accepted=found["pass"],
            verdicts=dict(found),
            stopped=accounts.stopped.get(test, ""),
        )
        for test, found in tallied.items()
    ]


def _expected(accounts: Accounts, entry: Entry | None, width: int, whole: int) -> int:
    """How many runs of a test a sustained trial keeps in flight: its copies, or as many as its
    share of the machine holds, one at least, and no more than its cap."""
    if accounts.policy.kind != "sustained" or entry is None:
        return 0
    if entry.copies or not entry.weight:
        return min(entry.copies, entry.most or entry.copies)
    fair = max(1, int(entry.weight * whole / max(width, 1) + 1e-9))
    return min(fair, entry.most) if entry.most else fair


def _open_alerts(accounts: Accounts, now: int) -> list[OpenAlert]:
    """The alerts told within the time after which what still holds is told again."""
    since = now - round(accounts.policy.watch.again * SECOND_NS)
    if accounts.over:
        return []
    return [
        OpenAlert(time=told.time, kind=told.kind, subject=told.subject, text=told.text, times=times)
        for told, times in reversed(open_alerts(accounts, since))
    ]


def _excluded(accounts: Accounts) -> list[tuple[str, str]]:
    """Excluded nodes, those with one reason together."""
    by_reason: dict[str, list[str]] = {}
    for name, why in accounts.excluded.items():
        by_reason.setdefault(why, []).append(name)
    return [(fold(sorted(names)), why) for why, names in by_reason.items()]
