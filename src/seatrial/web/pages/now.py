"""Now: the trials that run, and those that ended last."""

from __future__ import annotations

import contextlib
from pathlib import Path

from msgspec import Struct

from seatrial.acceptance.criteria import Overall
from seatrial.errors import SeatrialError
from seatrial.sinks.lag import SinkLag, sink_lags
from seatrial.store import queries
from seatrial.store.rows import Filters, RunRow, TrialRow
from seatrial.store.schema import Store, marks
from seatrial.trial.folder import TrialFolder
from seatrial.web.query import PageQuery
from seatrial.web.state.server_state import ServerState
from seatrial.web.state.trial_cache import Standing, TestNow
from seatrial.web.trials.trial_facts import (
    Builds,
    CriterionShown,
    builds_of,
    criteria_of,
    tests_of_store,
    trouble_of,
)

LATELY = 12
MAX_RUNNING = 8  # that are shown in full
LATEST_RUNS = 8


class Running(Struct, frozen=True, kw_only=True):
    """A trial that runs. ``standing`` is None while its journal is read for the first time (of
    which ``share_read`` is done) or cannot be read; what else is None is being judged. ``course``
    is the utilisation over time: the end of each span in s, and its share."""

    trial: TrialRow
    standing: Standing | None
    tests: list[TestNow]
    utilisation: float | None
    course: list[tuple[float, float]]
    verdict: Overall | None
    criteria: list[CriterionShown] | None
    builds: Builds
    latest: list[RunRow]
    sinks: list[SinkLag]
    share_read: float
    trouble: str


class Late(Struct, frozen=True, kw_only=True):
    """A trial that does not run. ``verdict`` is by its criteria: "" if it has none, None if it is
    not known yet."""

    trial: TrialRow
    verdict: Overall | str | None


class NowPage(Struct, frozen=True, kw_only=True):
    """The trials that run, and the latest others. ``trials`` counts all, ``more`` those that run
    and are not shown. ``folder`` is the folder of the trials."""

    running: list[Running]
    lately: list[Late]
    trials: int
    more: int
    folder: str


def data(state: ServerState, query: PageQuery) -> NowPage:
    found = queries.trials(state.store())
    running = [row for row in found if row.state == "running"]
    others = [row for row in found if row.state != "running"]
    others.sort(key=lambda row: row.created if row.rehearsed else row.last or row.created)
    return NowPage(
        running=[_running(state, row) for row in running[:MAX_RUNNING]],
        lately=[_late(state, row) for row in reversed(others[-LATELY:])],
        trials=len(found),
        more=max(0, len(running) - MAX_RUNNING),
        folder=str(state.folder),
    )


def _running(state: ServerState, row: TrialRow) -> Running:
    store = state.store()
    tailed = state.trials.of(row)
    standing = tailed.standing()
    status = tailed.status()
    return Running(
        trial=row,
        standing=standing,
        tests=standing.tests if standing else tests_of_store(store, row),
        utilisation=status.utilisation if status else None,
        course=status.over_time if status else [],
        verdict=status.verdict if status else None,
        criteria=criteria_of(status) if status else None,
        builds=builds_of(store, row),
        latest=_latest(store, row, standing.judged if standing else []),
        sinks=sinks_of(state, row),
        share_read=tailed.share_read,
        trouble=trouble_of(store, row, tailed),
    )


def _latest(store: Store, row: TrialRow, judged: list[str]) -> list[RunRow]:
    """Return the runs that were judged last; before there are any, those that were created last."""
    if not judged:
        return queries.runs(store, Filters(trial=row.path, limit=LATEST_RUNS))
    where = f"WHERE runs.run_id IN ({marks(len(judged))}) AND runs.trial = ?"
    found = queries.run_rows(store, where, [*judged, row.row], queries.NEWEST)
    over = [run for run in found if run.judged is not None]  # the store may be a moment behind
    return sorted(over, key=lambda run: run.judged or 0, reverse=True)


def _late(state: ServerState, row: TrialRow) -> Late:
    return Late(trial=row, verdict=state.trials.verdict(row) if row.component else "")


def sinks_of(state: ServerState, row: TrialRow) -> list[SinkLag]:
    """Return how far the sinks of a trial are; [] if that cannot be read."""
    with contextlib.suppress(SeatrialError, OSError):
        return sink_lags(TrialFolder(Path(row.path)))
    return []
