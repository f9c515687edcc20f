"""Recalled runs are among the failures of no query, list or export; nor are they missing anywhere.

The second of them was recalled while its trial was being abandoned, so its case does not run again.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from seatrial.model.codes import FAILED, RECALLED
from seatrial.results.case_figures import by_case
from seatrial.results.store import export, queries, run_lists, series
from seatrial.results.store.ingest import synced
from seatrial.results.store.location import Location
from seatrial.results.store.run_lists import BY_VERDICT
from seatrial.results.store.schema import Store
from seatrial.results.store.tables import Filters, RunCounts

from .trials import TrialMaker, a_case


@pytest.fixture
def store(tmp_path: Path, location: Location) -> Iterator[Store]:
    trial = TrialMaker(tmp_path, "t", [a_case(1), a_case(2, test="hpl")])
    trial.start()
    trial.run(trial.cases[0], "passed", figures={"triad": 1.0})
    trial.run(trial.cases[0], "failed", FAILED)
    trial.recalled_run(trial.cases[0], "recalled1")
    trial.recalled_run(trial.cases[0], "recalled2", again=False)
    trial.recalled_run(trial.cases[0], "recalled3", as_0_1=True)
    trial.recalled_run(trial.cases[1], "recalled4", again=False)
    trial.end(passed=False)
    with synced(location, tmp_path) as opened:
        yield opened


def test_they_are_counted_as_run_again(store: Store) -> None:
    assert queries.counts(store, Filters()) == RunCounts(0, 0, passed=1, failed=1, again=4)
    (trial,) = queries.trials(store)
    assert (trial.passed, trial.failed) == (1, 1)


def test_they_are_listed_with_their_verdict(store: Store) -> None:
    runs = queries.runs(store, Filters())
    assert [run.run_id for run in runs if run.code == RECALLED.number] == [
        f"recalled{number}" for number in (4, 3, 2, 1)
    ]
    assert queries.count_runs(store, Filters(verdicts=["recalled"])) == 4
    assert queries.count_runs(store, Filters(verdicts=["cancelled"])) == 0


def test_no_list_of_failures_has_them(store: Store) -> None:
    assert [run.run_id for run in queries.runs(store, Filters(failed=True))] == ["failed"]
    chosen = Filters(failed=True)
    page = run_lists.page(store, chosen, BY_VERDICT, None, 10)
    assert [run.run_id for run in page] == ["failed"]
    assert run_lists.causes_of(store, chosen) == {"": 1}


def test_a_case_whose_only_run_was_recalled_has_no_verdict(store: Store) -> None:
    (trial,) = queries.trials(store)
    assert queries.failed_cases(store, trial) == [a_case(1).id, a_case(2).id]


def test_what_is_compared_does_not_count_them(store: Store) -> None:
    groups = {group.test: group for group in by_case(store, queries.trials(store))}
    assert groups["stream"].excluded == {"failed": 1}
    assert groups["hpl"].excluded == {}


def test_they_are_in_no_series(store: Store) -> None:
    assert list(series.not_measured(store, Filters()).values()) == [{"failed": 1}]
    outcomes = series.outcomes(store, Filters())
    assert [outcome.run_id for outcome in outcomes] == ["passed", "failed"]
    (trial,) = queries.trials(store)
    found = series.elapsed_points(store, trial.row)
    assert found.odd == {"failed": FAILED.number}
    assert found.never == 0
    (rate,) = series.pass_counts(store, Filters())
    assert (rate.counted, rate.passed) == (2, 1)


def test_junit_skips_them(store: Store) -> None:
    text = "".join(export.junit(store, queries.trial(store, "t")))
    assert 'tests="6" failures="1" errors="0" skipped="4"' in text
    assert text.count("<skipped") == 4
    assert text.count("<failure") == 1
