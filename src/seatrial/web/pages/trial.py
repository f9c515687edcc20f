"""Trial: one trial as a whole: what it is, where its node-hours went, how its tests went."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from seatrial.acceptance.utilisation import USES
from seatrial.journal.codes import CODES, RECALLED
from seatrial.store import queries
from seatrial.store.gaps import gaps
from seatrial.store.rows import GapRow, TrialRow
from seatrial.store.schema import Store
from seatrial.web.asked import Asked
from seatrial.web.pages.now import sinks_of
from seatrial.web.pages.trial_plots import Window, windows_of
from seatrial.web.site import Site
from seatrial.web.trials.followed import Following, Standing, TestNow
from seatrial.web.trials.trial_facts import (
    Builds,
    CriterionShown,
    builds_of,
    criteria_of,
    tests_of_store,
    trouble_of,
)
from seatrial.web.trials.trial_variability import VariabilityShown, variability_of

if TYPE_CHECKING:
    from seatrial.acceptance.status import Status
    from seatrial.acceptance.sub_phases import SubPhase
    from seatrial.sinks.lag import SinkLag as SinkStanding
    from seatrial.web.trials.judged import Steps

MOST_GAPS = 20
MOST_ALERTS = 20
NO_FAULT = ("again", RECALLED.name)  # what is said of runs that ended without a fault of their own
_CODES = {code.name: code for code in CODES.values()}


class About(Struct, frozen=True, kw_only=True):
    """Who made the trial, where, of what. ``nodes`` are those of its machine, None where its folder
    is not to be had; ``seed`` is that of a rehearsal."""

    version: str
    owner: str
    host: str
    kind: str
    suites: list[str]
    plan_file: str
    toolchains: list[str]
    nodes: int | None
    seed: int | None


class UseShown(Struct, frozen=True, kw_only=True):
    """A use of the nodes, its share of what was available, and that in node-hours."""

    use: str
    meaning: str
    share: float
    node_hours: float


class UsesShown(Struct, frozen=True, kw_only=True):
    """How the nodes were used up to ``now`` (ns); ``lost`` is the largest loss in words."""

    now: int
    uses: list[UseShown]
    lost: str

    @property
    def accepted(self) -> float:
        """The share that accepted runs had."""
        return sum(use.share for use in self.uses if use.use == "accepted")


class Cause(Struct, frozen=True, kw_only=True):
    """The runs that ended with a verdict other than pass, by test."""

    code: int
    name: str
    meaning: str
    runs: int
    tests: list[tuple[str, int]]


class Load(Struct, frozen=True, kw_only=True):
    """The load of a metadata target, or the readings of a gauge: the highest, when (ns), the mean
    over time, and the most that it may be (0: not said)."""

    name: str
    peak: float
    peak_time: int
    mean: float
    most: float


class Alert(Struct, frozen=True, kw_only=True):
    """An alert that was told."""

    time: int
    kind: str
    test: str
    text: str


class Trial(Struct, frozen=True, kw_only=True):
    """A trial. What is None is being read or judged, or cannot be as its journal is not here."""

    trial: TrialRow
    about: About
    standing: Standing | None
    status: Status | None
    criteria: list[CriterionShown] | None
    sub_phases: list[SubPhase]
    uses: UsesShown | None
    tests: list[TestNow]
    causes: list[Cause]
    again: int
    windows: list[Window]
    alerts: list[Alert]
    told: int
    variability: VariabilityShown | None
    loads: list[Load] | None
    builds: Builds
    sinks: list[SinkStanding]
    gaps: list[GapRow]
    share_read: float
    trouble: str
    chosen: list[str]


def data(site: Site, asked: Asked) -> Trial:
    store = site.store()
    row = queries.trial(store, asked.path["tag"])
    following = site.followed.of(row)
    standing = following.standing()
    status = following.status()
    tests = standing.tests if standing and not following.trouble else tests_of_store(store, row)
    alerts = _alerts(following)
    loads = following.loads()
    names = {test.test for test in tests}
    return Trial(
        trial=row,
        about=_about(store, row, following),
        standing=standing,
        status=status,
        criteria=criteria_of(status) if status else None,
        sub_phases=status.sub_phases if status else [],
        uses=_uses(following),
        tests=tests,
        causes=_causes(tests),
        again=sum(test.others.get(name, 0) for test in tests for name in NO_FAULT),
        windows=windows_of(following),
        alerts=alerts[:MOST_ALERTS],
        told=len(alerts),
        variability=variability_of(site, row, following),
        loads=None if loads is None else [_load(steps) for steps in loads if steps.times],
        builds=builds_of(store, row),
        sinks=sinks_of(site, row),
        gaps=gaps(store, row)[:MOST_GAPS],
        share_read=following.share_read,
        trouble=trouble_of(store, row, following),
        chosen=[name for name in asked.all("test") if name in names],
    )


def _about(store: Store, row: TrialRow, following: Following) -> About:
    sql = "SELECT version, owner, host FROM trials WHERE id = ?"
    ((version, owner, host),) = store.rows(sql, (row.row,))
    record = following.course.record if following.course is not None else None
    kind = ""
    if record is not None:
        kind = record.component.kind if record.component else record.policy.kind
    return About(
        version=version,
        owner=owner,
        host=host,
        kind=kind.replace("_", " "),
        suites=record.asked.suites if record else [],
        plan_file=record.plan_file if record else "",
        toolchains=list(record.machine.toolchains) if record else [],
        nodes=following.course.history.nodes if following.course is not None else None,
        seed=record.seed if record and record.rehearsed else None,
    )


def _uses(following: Following) -> UsesShown | None:
    found = following.uses()
    if found is None:
        return None
    shown = [
        UseShown(
            use=use,
            meaning=meaning,
            share=found.shares[use],
            node_hours=found.shares[use] * found.available / 3600,
        )
        for use, meaning in USES.items()
    ]
    return UsesShown(now=found.now, uses=shown, lost=found.sentence)


def _causes(tests: list[TestNow]) -> list[Cause]:
    """What runs failed of, the most frequent first."""
    by_name: dict[str, list[tuple[str, int]]] = {}
    for test in tests:
        for name, number in test.others.items():
            if name not in NO_FAULT:
                by_name.setdefault(name, []).append((test.test, number))
    found = []
    for name, each in by_name.items():
        code = _CODES.get(name)
        found.append(
            Cause(
                code=code.number if code else -1,
                name=name,
                meaning=code.meaning if code else "not in the registry",
                runs=sum(number for _, number in each),
                tests=sorted(each, key=lambda one: -one[1]),
            )
        )
    return sorted(found, key=lambda cause: -cause.runs)


def _alerts(following: Following) -> list[Alert]:
    """All alerts, the latest first."""
    course = following.course
    if course is None:
        return []
    return [
        Alert(time=told.time, kind=told.kind, test=told.subject, text=told.text)
        for told in reversed(course.history.alerts)
    ]


def _load(steps: Steps) -> Load:
    whole = weighed = 0.0
    peak, peak_time = 0.0, steps.times[0]
    for start, end, value in zip(steps.times, steps.times[1:], steps.values, strict=False):
        if value is None:
            continue
        whole += end - start
        weighed += value * (end - start)
        if value > peak:
            peak, peak_time = value, start
    return Load(
        name=steps.name,
        peak=peak,
        peak_time=round(peak_time * 1e9),
        mean=weighed / whole if whole else 0.0,
        most=steps.most,
    )
