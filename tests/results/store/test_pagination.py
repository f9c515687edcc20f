"""Lists of runs a page at a time, siblings and the ends of failures, in both databases."""

from __future__ import annotations

from pathlib import Path

import pytest

from seatrial.journal.events import BuildEnded, BuildStarted, TrialCancelled
from seatrial.model import codes
from seatrial.results.store import queries, run_lists
from seatrial.results.store.ingest import synced
from seatrial.results.store.location import Location
from seatrial.results.store.run_lists import (
    BY_VERDICT,
    ORDERS,
    Order,
    earlier,
    page,
    place_of,
    siblings,
)
from seatrial.results.store.schema import Store
from seatrial.results.store.tables import Filters, RunRow

from .trials import NOON, SECOND, TrialMaker, a_case

RUNS = 9


def made(trials: Path, tag: str = "ties", created: int = NOON, **changes: object) -> TrialMaker:
    """Runs of two cases that begin three at a time, every third of which failed."""
    maker = TrialMaker(trials, tag, [a_case(1), a_case(2, test="hpl")], created=created, **changes)  # type: ignore[arg-type]
    maker.start()
    for number in range(RUNS):
        maker.now = created + number // 3 * 100 * SECOND
        verdict = codes.FAILED if number % 3 == 2 else codes.PASS
        figures = {"triad": 100.0 + number}
        maker.run(maker.cases[number % 2], f"{tag}{number}", verdict, figures=figures)
    maker.end()
    return maker


def paged(store: Store, order: Order, filters: Filters, limit: int) -> list[RunRow]:
    found: list[RunRow] = []
    place = None
    while rows := page(store, filters, order, place, limit):
        found += rows
        place = place_of(rows[-1], order)
        assert len(found) < 100
    return found


@pytest.mark.parametrize("limit", [1, 2, 4])
def test_pages_hold_every_run_once_where_many_began_together(
    location: Location, tmp_path: Path, limit: int
) -> None:
    made(tmp_path / "trials")
    with synced(location, tmp_path / "trials") as store:
        for order in ORDERS.values():
            whole = page(store, Filters(), order, None, 100)
            assert len(whole) == RUNS
            assert paged(store, order, Filters(), limit) == whole
        failed = Filters(failed=True)
        whole = page(store, failed, BY_VERDICT, None, 100)
        assert [run.run_id for run in whole] == ["ties8", "ties5", "ties2"]
        assert paged(store, BY_VERDICT, failed, limit) == whole
        assert sum(run_lists.causes_of(store, failed).values()) == len(whole)


def test_a_window_and_a_trial_bound_a_page(location: Location, tmp_path: Path) -> None:
    made(tmp_path / "trials")
    made(tmp_path / "trials", "others")
    with synced(location, tmp_path / "trials") as store:
        since, until = NOON + 50 * SECOND, NOON + 150 * SECOND
        filters = Filters(trial="ties", since=since, until=until)
        found = page(store, filters, ORDERS["oldest"], None, 100)
        assert {run.run_id for run in found} == {"ties3", "ties4", "ties5"}


def test_the_event_that_tells_of_a_failure(location: Location, tmp_path: Path) -> None:
    made(tmp_path / "trials")
    with synced(location, tmp_path / "trials") as store:
        failed = page(store, Filters(failed=True), BY_VERDICT, None, 1)
        (end,) = run_lists.ends_of(store, failed).values()
        assert (end.event, int(end.value)) == ("binary_execute_end", 3)
        passed = page(store, Filters(states=("passed",)), ORDERS["newest"], None, 1)
        (end,) = run_lists.ends_of(store, passed).values()
        assert end.event == "check_end"
        assert run_lists.ends_of(store, []) == {}


def test_a_run_is_found_by_its_very_id(location: Location, tmp_path: Path) -> None:
    made(tmp_path / "trials")
    with synced(location, tmp_path / "trials") as store:
        found = queries.run(store, "ties/ties4")
        assert found.run_id == "ties4"


def test_what_there_is_to_choose_from(location: Location, tmp_path: Path) -> None:
    made(tmp_path / "trials", tags=("node", "memory"))
    made(tmp_path / "trials", "younger", created=NOON + SECOND, machine="ember")
    with synced(location, tmp_path / "trials") as store:
        found = run_lists.choices(store)
        assert found.trials == ["younger", "ties"]
        assert found.machines == ["ember", "frontier"]
        assert found.tags == ["memory", "node"]


def test_a_build_is_found_by_its_key(location: Location, tmp_path: Path) -> None:
    maker = TrialMaker(tmp_path / "trials", "building", [a_case(1)])
    for key, value in (("b1", 0), ("b2", 1), ("b3", None)):
        start = maker.event(BuildStarted, key=key)
        if value is not None:
            maker.event(BuildEnded, key=key, code=value)
    maker.write()
    with synced(location, tmp_path / "trials") as store:
        ((trial,),) = store.rows("SELECT id FROM trials")
        found = {key: run_lists.build_of(store, trial, key) for key in ("b1", "b2", "b3", "", "b4")}
        told = {key: build.failed for key, build in found.items() if build is not None}
        assert told == {"b1": False, "b2": True, "b3": None}
        last = found["b3"]
        assert last is not None
        assert (last.started, last.ended) == (start.time, None)


def test_builds_under_way_are_counted(location: Location, tmp_path: Path) -> None:
    """Those of trials that run, whose machine is meant; not those that a cancelled trial left."""
    for tag in ("one", "two"):
        maker = TrialMaker(tmp_path / "trials", tag, [a_case(1)])
        maker.start()
        for key in ("b1", "b2", "b3"):
            maker.event(BuildStarted, key=key, test="stream", path=f"/builds/{key}")
        maker.event(BuildEnded, key="b1", test="stream", path="/builds/b1", code=0)
        if tag == "two":
            maker.event(TrialCancelled)
        maker.write()
    with synced(location, tmp_path / "trials") as store:
        assert run_lists.builds_under_way(store, Filters()) == 2
        assert run_lists.builds_under_way(store, Filters(trial="two")) == 0
        assert run_lists.builds_under_way(store, Filters(machine="elsewhere")) == 0


def test_siblings_are_of_the_case_on_the_machine(location: Location, tmp_path: Path) -> None:
    trials = tmp_path / "trials"
    made(trials)
    made(trials, "later", created=NOON + 86_400 * SECOND)
    made(trials, "elsewhere", machine="ember")
    made(trials, "dream", rehearsed=True)
    with synced(location, trials) as store:
        run = queries.run(store, "later/later0")
        found = siblings(store, run)
        assert {one.trial for one in found.runs} == {"ties", "later"}
        assert found.found == len(found.runs) == 10
        assert found.older is not None
        assert found.older.run_id == "ties8"
        assert found.newer is not None
        assert found.newer.run_id == "later2"
        created = [(one.created, one.row) for one in found.runs]
        assert created == sorted(created, reverse=True)
        figures = earlier(store, found.runs, run)[("triad", "MB/s")]
        assert [value for _, value in figures] == [100.0, 104.0, 106.0, 100.0]  # two had failed
        dream = queries.run(store, "dream/dream1")
        assert {one.trial for one in siblings(store, dream).runs} == {"dream"}
