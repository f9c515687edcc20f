from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from seatrial.errors import UsageError
from seatrial.journal.events import (
    RunCreated,
    TrialCancelled,
    TrialEnded,
    TrialPaused,
    TrialResumed,
)
from seatrial.journal.journal import Journal
from seatrial.model import codes
from seatrial.model.plan import Component
from seatrial.results.store import export, queries
from seatrial.results.store.ingest import synced
from seatrial.results.store.location import Location
from seatrial.results.store.queries import NEWEST, conditions, count_runs, run, runs
from seatrial.results.store.schema import Store
from seatrial.results.store.series import pass_counts
from seatrial.results.store.tables import Filters, SummaryRow, TrialRow

from .conftest import NEEDS_POSTGRES
from .trials import NOON, SECOND, TrialMaker, a_case, a_trial

HOUR = 3600 * SECOND


@pytest.fixture(scope="module")
def two_trials(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the trials ``old`` and ``new``; nothing changes them."""
    folder = tmp_path_factory.mktemp("two")
    a_trial(folder, "old")
    a_trial(folder, "new", created=NOON + HOUR, machine="lumi", tags=("net", "io"))
    return folder


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgresql", marks=NEEDS_POSTGRES)])
def store(request: pytest.FixtureRequest, two_trials: Path) -> Iterator[Store]:
    """What was read of them, in either database; it is only asked."""
    if request.param == "sqlite":
        location: Location = two_trials / "store.sqlite"
    else:
        location = request.getfixturevalue("postgres").database()
    with synced(location, two_trials) as opened:
        yield opened


def one_trial(location: Location, trial: TrialMaker) -> TrialRow:
    trial.write()
    with synced(location, trial.folder.path.parent) as store:
        return queries.trial(store, trial.tag)


# ---- runs ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (
            {},
            [
                *("bbbb3333new", "aaaa2222new", "aaaa1111new"),
                *("bbbb3333old", "aaaa2222old", "aaaa1111old"),
            ],
        ),
        ({"trial": "old"}, ["bbbb3333old", "aaaa2222old", "aaaa1111old"]),
        ({"test": "hp"}, ["bbbb3333new", "bbbb3333old"]),
        ({"test": "h?l"}, ["bbbb3333new", "bbbb3333old"]),
        ({"test": "[!h]*", "trial": "new"}, ["aaaa2222new", "aaaa1111new"]),
        ({"test": "tream"}, ["aaaa2222new", "aaaa1111new", "aaaa2222old", "aaaa1111old"]),
        ({"test": "tre*"}, []),
        ({"tag": "io"}, ["bbbb3333new", "aaaa2222new", "aaaa1111new"]),
        ({"tag": "i"}, []),
        ({"failed": True, "trial": "new"}, ["bbbb3333new", "aaaa2222new"]),
        ({"verdicts": ["pass"]}, ["aaaa1111new", "aaaa1111old"]),
        ({"verdicts": ["wrong-answer", "31"], "trial": "n"}, ["bbbb3333new", "aaaa2222new"]),
        ({"machine": "lumi", "test": "hpl"}, ["bbbb3333new"]),
        ({"machine": "fr*", "test": "hpl"}, ["bbbb3333old"]),
        ({"toolchain": "gc"}, []),
        ({"toolchain": "gc*", "test": "hpl"}, ["bbbb3333new", "bbbb3333old"]),
        ({"since": NOON + HOUR, "test": "hpl"}, ["bbbb3333new"]),
        ({"since": NOON + HOUR, "trial": "old"}, []),
    ],
    ids=str,
)
def test_filters(store: Store, filters: dict[str, Any], expected: list[str]) -> None:
    found = [row.run_id for row in runs(store, Filters(**filters))]
    assert found == expected
    assert count_runs(store, Filters(**filters)) == len(found)


def test_a_limit_takes_the_newest_and_the_count_does_not_care(store: Store) -> None:
    limited = Filters(limit=2)
    assert [row.run_id for row in runs(store, limited)] == ["bbbb3333new", "aaaa2222new"]
    assert count_runs(store, limited) == 6


def test_a_verdict_that_is_none_is_refused_with_those_that_are(store: Store) -> None:
    with pytest.raises(UsageError, match=r"'good'.*node failure"):
        runs(store, Filters(verdicts=["good"]))


def test_a_run_is_found_by_a_beginning_of_its_id(store: Store) -> None:
    assert run(store, "aaaa1111o").run_id == "aaaa1111old"
    assert run(store, "old/aaaa1").run_id == "aaaa1111old"
    with pytest.raises(UsageError, match="no run begins with 'aaaa9'"):
        run(store, "aaaa9")
    with pytest.raises(UsageError, match="no run begins with ''"):
        run(store, "")


def test_several_runs_are_listed_never_chosen_from(store: Store) -> None:
    with pytest.raises(UsageError) as raised:
        run(store, "aaaa1")
    assert "new/aaaa1111new" in str(raised.value)
    assert "old/aaaa1111old" in str(raised.value)
    assert "aaaa2222" not in str(raised.value)


def test_the_same_id_in_two_trials_needs_the_trial(tmp_path: Path, location: Location) -> None:
    for tag in ("one", "two"):
        trial = TrialMaker(tmp_path, tag, [a_case(1)])
        trial.run(trial.cases[0], "same")
        trial.run(trial.cases[0], "sameandmore")
        trial.write()
    with synced(location, tmp_path) as store:
        with pytest.raises(UsageError, match=r"(?s)one/same .*two/same |two/same .*one/same "):
            run(store, "same")
        assert run(store, "two/same").trial == "two"


def test_short_ids_are_as_long_as_they_must_be(tmp_path: Path, location: Location) -> None:
    trial = TrialMaker(tmp_path, "ids", [a_case(1)])
    for run_id in ("abcdefghijkl", "abcdefghiXkl", "zbcdefghijkl"):
        trial.run(trial.cases[0], run_id)
    trial.write()
    with synced(location, tmp_path) as store:
        assert queries.short_ids(store, ["zbcdefghijkl"]) == {"zbcdefghijkl": "zbcdefgh"}
        shown = queries.short_ids(store, ["zbcdefghijkl", "abcdefghijkl"])
        assert shown == {"zbcdefghijkl": "zbcdefghij", "abcdefghijkl": "abcdefghij"}
        assert run(store, "abcdefghij").run_id == "abcdefghijkl"


# ---- trials -------------------------------------------------------------------------------


def test_a_trial_counts_its_runs(tmp_path: Path, location: Location) -> None:
    cases = [a_case(1, repeat=4), a_case(2), a_case(3)]
    trial = TrialMaker(tmp_path, "counted", cases)
    trial.start()
    started = trial.now
    trial.run(cases[0], "r1")
    trial.run(cases[0], "r2", codes.FAILED)
    trial.run(cases[1], "r3", codes.LOST, again=True)
    trial.run(cases[1], "r4", verdict=None)
    trial.event(RunCreated, run_id="r5", case=cases[2].id, test="stream")
    trial.event(TrialPaused)
    row = one_trial(location, trial)
    assert (row.cases, row.runs) == (3, 6)
    assert (row.passed, row.failed, row.running, row.waiting) == (1, 1, 1, 3)
    assert (row.state, row.started) == ("paused", started)
    assert row.elapsed == (trial.now - started) / SECOND


def test_the_last_loss_of_a_case_that_is_lost_too_often_is_its_failure(
    tmp_path: Path, location: Location
) -> None:
    trial = TrialMaker(tmp_path, "lost", [a_case(1)])
    for number in range(4):
        trial.run(trial.cases[0], f"r{number}", codes.LOST, again=number < 3)
    row = one_trial(location, trial)
    assert (row.runs, row.failed, row.waiting) == (1, 1, 0)
    with synced(location, tmp_path) as store:
        assert [r.run_id for r in runs(store, Filters(failed=True))] == ["r3"]
        assert len(runs(store, Filters(verdicts=["lost"]))) == 4


def test_what_was_cancelled_with_its_trial_waits(tmp_path: Path, location: Location) -> None:
    trial = TrialMaker(tmp_path, "stopped", [a_case(1), a_case(2)])
    trial.start()
    trial.run(trial.cases[0], "r1", codes.CANCELLED)  # by somebody else: that is its verdict
    trial.event(TrialCancelled)
    trial.run(trial.cases[1], "r2", codes.CANCELLED, again=True)
    trial.event(TrialPaused)
    row = one_trial(location, trial)
    assert (row.failed, row.waiting, row.state) == (1, 1, "cancelled")
    trial.event(TrialResumed)
    trial.run(trial.cases[1], "r3")
    trial.event(TrialEnded, failed=1)
    row = one_trial(location, trial)
    assert (row.passed, row.failed, row.waiting, row.state) == (1, 1, 0, "ended")


def test_a_cancelled_run_waits_though_its_end_is_seen_after_a_resume(
    tmp_path: Path, location: Location
) -> None:
    """The store takes the conductor's word, which the verdict bears."""
    trial = TrialMaker(tmp_path, "resumed", [a_case(1)])
    trial.start()
    trial.event(TrialCancelled)
    trial.event(TrialResumed)
    trial.run(trial.cases[0], "r1", codes.CANCELLED, again=True)
    row = one_trial(location, trial)
    assert (row.failed, row.waiting) == (0, 1)


def test_a_trial_that_nobody_runs_is_interrupted(tmp_path: Path, location: Location) -> None:
    trial = TrialMaker(tmp_path, "alive", [a_case(1)])
    trial.start()
    trial.write()
    lock = trial.folder.journal.with_name("journal.jsonl.lock")

    def state() -> str:
        with synced(location, tmp_path) as store:
            return queries.trial(store, "alive").state

    assert state() == "interrupted"  # its owner let go
    with Journal.take(trial.folder.journal):
        with synced(location, tmp_path) as store:
            row = queries.trial(store, "alive")
        assert row.state == "running"
        assert row.elapsed is not None and row.started is not None
        assert abs(row.elapsed - (time.time() - row.started / SECOND)) < 60
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    owner = f"seatrial, process {child.pid} on {os.uname().nodename}"
    with lock.open("r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(owner.ljust(80))
        file.flush()
        assert state() == "interrupted"  # locked by another, but the owner it names is dead
    lock.write_text("seatrial, process 1 on some-other-host")
    assert state() == "interrupted"
    with lock.open("r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert state() == "running"


@pytest.mark.parametrize(
    ("names", "state"),
    [
        ([], "new"),
        (["trial_start", "trial_pause"], "paused"),
        (["trial_start", "trial_pause", "trial_resume"], "interrupted"),
        (["trial_start", "trial_end"], "ended"),
        (["trial_start", "trial_cancel", "trial_pause"], "cancelled"),
        (["trial_start", "trial_cancel", "trial_resume", "trial_end"], "ended"),
        (["trial_start", "alert"], "interrupted"),
    ],
    ids=str,
)
def test_the_state_of_a_trial(
    tmp_path: Path, location: Location, names: list[str], state: str
) -> None:
    trial = TrialMaker(tmp_path, "state", [a_case(1)])
    for name in names:
        trial.line(name)
    assert one_trial(location, trial).state == state


def test_trials_come_newest_first(store: Store) -> None:
    assert [row.tag for row in queries.trials(store)] == ["new", "old"]


def test_a_trial_is_found_by_tag_beginning_or_path(store: Store, two_trials: Path) -> None:
    for wanted in ("old", "ol", str(two_trials / "old")):
        assert queries.trial(store, wanted).tag == "old"
    with pytest.raises(UsageError, match="no trial 'x'; the latest is new"):
        queries.trial(store, "x")
    with pytest.raises(UsageError, match="no trial ''"):
        queries.trial(store, "")


def test_a_trial_that_is_a_link_is_found_by_its_path(tmp_path: Path, location: Location) -> None:
    TrialMaker(tmp_path / "elsewhere", "linked", [a_case(1)]).write()
    trials = tmp_path / "trials"
    trials.mkdir()
    (trials / "linked").symlink_to(tmp_path / "elsewhere" / "linked")
    with synced(location, trials) as store:
        assert queries.trial(store, str(trials / "linked")).tag == "linked"


def test_a_whole_tag_wins_over_a_longer_one(tmp_path: Path, location: Location) -> None:
    for tag in ("day", "day-2", "night", "nigh"):
        TrialMaker(tmp_path, tag, [a_case(1)])
    with synced(location, tmp_path) as store:
        assert queries.trial(store, "day").tag == "day"
        with pytest.raises(UsageError, match=r"several trials.*nigh"):
            queries.trial(store, "ni")


def test_the_summary_of_a_trial(tmp_path: Path, location: Location) -> None:
    trial = TrialMaker(tmp_path, "sum", [a_case(1, repeat=4), a_case(2)])
    verdicts = (codes.PASS, codes.PERFORMANCE, codes.PASS, codes.WRONG_ANSWER)
    for number, (value, verdict) in enumerate(zip((100, 90, 120, 7000), verdicts, strict=True)):
        trial.run(trial.cases[0], f"r{number}", verdict, figures={"triad": value})
    trial.run(trial.cases[1], "s", codes.WRONG_ANSWER, figures={"triad": 5})
    trial.write()
    with synced(location, tmp_path) as store:
        found = queries.summary(store, queries.trial(store, "sum"))
    first, second = (case.name for case in trial.cases)
    fixed = ("triad", "MB/s", "higher")
    assert found == [
        SummaryRow(trial.cases[0].id, first, "", *fixed, 3, 1, 90.0, 100.0, 120.0, 0.3),
        SummaryRow(trial.cases[1].id, second, "", *fixed, 0, 1, None, None, None, None),
    ]


def test_failed_cases(tmp_path: Path, location: Location) -> None:
    cases = [a_case(number) for number in range(5)]
    trial = TrialMaker(tmp_path, "f", cases)
    trial.run(cases[0], "a1", codes.FAILED)
    trial.run(cases[0], "a2")
    trial.run(cases[1], "b1")
    trial.run(cases[1], "b2", codes.FAILED)
    trial.run(cases[2], "c1", verdict=None)
    trial.run(cases[3], "d1")
    trial.run(cases[3], "d2", verdict=None)
    trial.write()
    with synced(location, tmp_path) as store:
        found = queries.failed_cases(store, queries.trial(store, "f"))
    assert found == [cases[number].id for number in (0, 1, 2, 4)]


# ---- plans and rehearsals -----------------------------------------------------------------


def test_a_trial_of_a_plan_is_kept_as_one(tmp_path: Path, location: Location) -> None:
    component = Component(component="stability", kind="sustained")
    of_plan: dict[str, Any] = {"plan": "accept", "component": component, "phase": "two"}
    trial = TrialMaker(tmp_path, "made-up", [a_case(1)], rehearsed=True, **of_plan)
    trial.run(trial.cases[0], "r1", target="scratch/mdt1", stage="full")
    TrialMaker(tmp_path, "plain", [a_case(1)]).write()
    row = one_trial(location, trial)
    assert (row.plan, row.component, row.phase, row.rehearsed) == (
        *("accept", "stability", "two"),
        True,
    )
    with synced(location, tmp_path) as store:
        found = run(store, "r1")
        assert (found.target, found.stage, found.rehearsed) == ("scratch/mdt1", "full", True)
        plain = queries.trial(store, "plain")
        assert (plain.plan, plain.component, plain.phase, plain.rehearsed) == ("", "", "", False)
        assert '"scratch/mdt1"' in "".join(export.junit(store, row))
        assert "made-up (rehearsed)" in "".join(export.junit(store, row))
        assert export.trial_record(store, row)["trial"]["rehearsed"] is True


def test_runs_of_rehearsals_answer_only_where_they_are_asked(
    tmp_path: Path, location: Location
) -> None:
    a_trial(tmp_path, "real")
    a_trial(tmp_path, "made-up", rehearsed=True)
    with synced(location, tmp_path) as store:

        def trials(**filters: Any) -> set[str]:
            found = runs(store, Filters(**filters))
            assert len(found) == count_runs(store, Filters(**filters))
            return {row.trial for row in found}

        assert trials() == trials(test="hpl") == trials(failed=True) == {"real"}
        assert trials(rehearsed=True) == trials(rehearsed=True, test="hpl") == {"real", "made-up"}
        assert trials(trial="made-up") == {"made-up"}
        marks = {row.tag: row.rehearsed for row in queries.trials(store)}
        assert marks == {"real": False, "made-up": True}


def test_an_abandoned_trial_stays_abandoned(tmp_path: Path, location: Location) -> None:
    trial = TrialMaker(tmp_path, "state", [a_case(1)])
    for name in ("trial_start", "trial_cancel", "trial_abandon", "trial_pause"):
        trial.line(name)
    assert one_trial(location, trial).state == "abandoned"


# ---- enough for large stores --------------------------------------------------------------


def test_unchanged_trials_cost_a_stat_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(20):
        a_trial(tmp_path, f"t{number}")
    synced(tmp_path / "store.sqlite", tmp_path).close()
    opened: list[Path] = []
    real = Path.open

    def noted(self: Path, *given: Any, **more: Any) -> Any:
        opened.append(self)
        return real(self, *given, **more)

    monkeypatch.setattr(Path, "open", noted)
    with synced(tmp_path / "store.sqlite", tmp_path) as store:
        assert len(queries.trials(store)) == 20
    assert {path.name for path in opened} <= {"mountinfo"}


@pytest.mark.parametrize("filters", [{}, {"trial": "new"}, {"since": NOON}], ids=str)
def test_the_newest_runs_need_no_sorting_of_all(tmp_path: Path, filters: dict[str, Any]) -> None:
    a_trial(tmp_path, "old")
    a_trial(tmp_path, "new")
    with synced(tmp_path / "store.sqlite", tmp_path) as store:
        where, values = conditions(store, Filters(**filters))
        sql = f"SELECT runs.id FROM runs {where} {NEWEST} LIMIT 50"
        steps = [row[3] for row in store.rows(f"EXPLAIN QUERY PLAN {sql}", values)]
    assert all("COVERING INDEX runs_by_" in step for step in steps), steps
    assert len(steps) == 1


def test_a_rate_counts_runs_that_ran_again_only_for_faults_of_their_own(
    tmp_path: Path, location: Location
) -> None:
    trial = TrialMaker(tmp_path, "t", [a_case(1), a_case(2)])
    for case, (name, verdict, again) in product(
        trial.cases,
        [("a", codes.FAILED, True), ("b", codes.NODE_FAILURE, True), ("c", codes.LOST, False)],
    ):
        trial.run(case, name + case.id, verdict, again=again, stage="full")
    trial.run(trial.cases[0], "alone", stage="alone")
    trial.end(passed=False)
    with synced(location, tmp_path) as store:
        found = [(rate.counted, rate.passed) for rate in pass_counts(store, Filters(), "full")]
        assert found == [(2, 0), (2, 0)]
        found = [(rate.counted, rate.passed) for rate in pass_counts(store, Filters())]
        assert sorted(found) == [(2, 0), (3, 1)]
