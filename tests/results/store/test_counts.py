"""Counts and lists of the same runs: they agree under every filter, in both databases."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seatrial.errors import UsageError
from seatrial.journal.events import RunCreated, RunJudged, ScriptStarted
from seatrial.model import codes
from seatrial.model.codes import CODES
from seatrial.results.store import queries, series
from seatrial.results.store.ingest import sync, synced
from seatrial.results.store.location import Location
from seatrial.results.store.opening import open_store, reopen_empty
from seatrial.results.store.schema import Store
from seatrial.results.store.tables import STATES, Filters, RunCounts, RunRow, outcome_of

from .conftest import NEEDS_POSTGRES
from .postgres import PostgresServer
from .trials import NOON, SECOND, TrialMaker, a_case

HOUR = 3600 * SECOND
TESTS = ("stream", "hpl", "io_ior", "io_mdtest")


def many_trials(folder: Path) -> None:
    """Four trials of two machines, one of them rehearsed, with runs of every verdict."""
    chance = random.Random(5)
    verdicts = [*CODES.values(), *[codes.PASS] * 20, *[None] * 5]
    for number, tag in enumerate(("mon", "tue", "wed", "thu")):
        cases = [
            a_case(n, test=TESTS[n % 4], toolchain=("gcc", "clang")[n // 4], repeat=3)
            for n in range(8)
        ]
        trial = TrialMaker(
            *(folder, tag, cases),
            created=NOON + number * HOUR,
            machine=("frost", "ember")[number % 2],
            tags=("io", "net") if number > 1 else ("net",),
            rehearsed=number == 3,
        )
        trial.start()
        for place in range(60):
            verdict = chance.choice(verdicts)
            again = verdict in (codes.LOST, codes.CANCELLED) and chance.random() < 0.7
            figures = {"triad": chance.random()} if verdict else None
            trial.run(
                *(chance.choice(cases), f"{tag}{place:04}", verdict),
                figures=figures,
                again=again,
            )
            if place % 9 == 0:
                trial.event(RunCreated, run_id=f"{tag}x{place:04}", case=cases[0].id)
        trial.write()


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgresql", marks=NEEDS_POSTGRES)])
def store(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Store]:
    folder = tmp_path_factory.mktemp("counts")
    many_trials(folder)
    location: Location = folder / "store.sqlite"
    if request.param == "postgresql":
        server: PostgresServer = request.getfixturevalue("postgres")
        location = server.database()
    with synced(location, folder) as opened:
        yield opened


def agreeing(store: Store, filters: Filters) -> list[RunRow]:
    found = queries.runs(store, filters)
    again = {
        run.row
        for run in found
        if store.rows("SELECT again FROM runs WHERE id = ?", (run.row,))[0][0]
    }
    states = Counter(outcome_of(run.code, run.row in again) for run in found)
    assert queries.counts(store, filters) == RunCounts(*(states[number] for number in range(6)))
    told = Counter((outcome_of(run.code, run.row in again), run.code) for run in found)
    asked = {(state, code): number for state, code, number in queries.codes_of(store, filters)}
    assert asked == dict(told)
    return found


some = st.sampled_from
any_filters = st.builds(
    Filters,
    trial=some(["", "", "mon", "tu", "thu"]),
    test=some(["", "", "io", "io_*", "h?l", "none"]),
    tests=some([None, None, {"stream", "hpl"}, {"io_ior"}, set(), {"stre"}]),
    tag=some(["", "", "io", "ne"]),
    verdicts=some([(), (), ("pass",), ("lost", "cancelled"), ("pending", "17")]),
    states=some([(), (), ("failed",), ("passed", "running"), ("waiting", "again")]),
    failed=st.booleans(),
    since=some([0, 0, NOON, NOON + HOUR + 200 * SECOND, NOON + 9 * HOUR]),
    until=some([0, 0, NOON + 300 * SECOND, NOON + 2 * HOUR]),
    machine=some(["", "", "fro*", "ember", "x*"]),
    toolchain=some(["", "", "gcc", "[!g]*", "z*"]),
    rehearsed=st.booleans(),
)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(filters=any_filters)
def test_counts_agree_with_the_list_under_any_filter(store: Store, filters: Filters) -> None:
    found = agreeing(store, filters)
    for run in found:
        assert filters.tests is None or run.test in filters.tests
        assert run.created >= filters.since
        assert not filters.until or run.created < filters.until
        assert run.rehearsed is False or filters.rehearsed or filters.trial
        assert not filters.toolchain.startswith("gcc") or run.toolchain == "gcc"
    order = [(run.created, run.row) for run in found]
    assert order == sorted(order, reverse=True)


def test_every_state_can_be_asked_for(store: Store) -> None:
    sizes = {name: len(agreeing(store, Filters(states=(name,)))) for name in STATES}
    assert all(sizes.values())
    assert sum(sizes.values()) == len(agreeing(store, Filters()))
    assert agreeing(store, Filters(failed=True)) == agreeing(store, Filters(states=("failed",)))
    with pytest.raises(UsageError, match="'broken' is no state of runs; one of: waiting"):
        queries.counts(store, Filters(states=("broken",)))


def test_the_counts_of_trials_follow_their_journals(tmp_path: Path, location: Location) -> None:
    trial = TrialMaker(tmp_path, "live", [a_case(1, repeat=9)])
    of: dict[str, Any] = {"case": trial.cases[0].id, "test": "stream"}
    open_store(location).close()
    seen = []
    with reopen_empty(location) as store:
        for kind, more in (
            (RunCreated, {}),
            (ScriptStarted, {}),
            (RunJudged, {"code": 1}),
            (RunJudged, {"code": 39, "will_rerun": True}),
            (RunJudged, {"code": 0}),
        ):
            trial.event(kind, run_id="r1", **of, **more)
            trial.write()
            sync(store, tmp_path)
            agreeing(store, Filters(trial="live"))
            seen.append(queries.counts(store, Filters()).index(1))
    assert seen == [STATES[name] for name in ("waiting", "running", "failed", "again", "passed")]


# ---- points ---------------------------------------------------------------------------------


def test_points_are_the_runs_that_started_and_are_over(store: Store) -> None:
    trial = queries.trial(store, "tue")
    over = [
        run
        for run in queries.runs(store, Filters(trial="tue"))
        if run.code not in queries.NO_OUTCOME
    ]
    for names in ((), ("hpl",), ("none",), TESTS[1:]):
        runs = [run for run in over if not names or run.test in names]
        found = series.elapsed_points(store, trial.row, names)
        started = [run for run in runs if run.script_started is not None]
        assert found.never == len(runs) - len(started)
        assert found.odd == {run.run_id: run.code for run in runs if run.code != codes.PASS.number}
        assert [one.test for one in found.points] == sorted(
            test for test in TESTS if not names or test in names
        )
        for one in found.points:
            assert one.script_started == sorted(one.script_started)
            told = zip(one.run_ids, one.script_started, one.elapsed, strict=True)
            assert sorted(told) == sorted(
                (run.run_id, run.script_started, seconds_of(run))
                for run in started
                if run.test == one.test
            )


def seconds_of(run: RunRow) -> float | None:
    if run.elapsed is not None:
        return run.elapsed
    end = run.judged if run.script_ended is None else run.script_ended
    return None if end is None or run.script_started is None else (end - run.script_started) / 1e9
