from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import seatrial
from seatrial.api import Results, open_results
from tests.programs import Workplace

RATE = {"rate": {"find": "^rate (\\S+)", "unit": "GB/s", "better": "higher"}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two trials of two tests: one is measured, one fails."""
    place = Workplace(tmp_path_factory.mktemp("api"))
    place.local()
    script = 'echo "rate $edge.5"; [ "$edge" != 3 ]'
    place.test("copy", script, parameters={"edge": [1, 2, 3]}, metrics=RATE)
    place.test("odd", "exit 4", parameters={"word": ["a", "1"]})
    for tag in ("before", "after"):
        assert place.run("--name", tag).code == 1
    return place.trials


@pytest.fixture
def results(folder: Path) -> Iterator[Results]:
    with open_results(folder) as found:
        yield found


def test_trials_cases_runs_and_events(results: Results) -> None:
    assert [trial.tag for trial in results.trials()] == ["after", "before"]
    assert [case.parameters for case in results.cases("bef") if case.test == "copy"] == [
        {"edge": 1},
        {"edge": 2},
        {"edge": 3},
    ]
    assert len(results.runs()) == 10
    failed = results.runs(failed=True, trial="after")
    assert {run.verdict for run in failed} == {"failed"}
    assert len(failed) == 3
    assert results.run(failed[0].run_id[:8]) == failed[0]
    names = [event.event for event in results.events(failed[0])]
    assert names[0] == "logging_start" and "check_end" in names


def test_figures_have_their_case(results: Results) -> None:
    figures = results.figures("rate", trial="after")
    assert {one.parameters["edge"]: one.value for one in figures} == {1: 1.5, 2: 2.5, 3: 3.5}
    assert {(one.unit, one.better) for one in figures} == {("GB/s", "higher")}
    assert results.figures("rat*", trial="after") == figures
    assert results.figures("other") == []


def test_times_are_given_as_people_give_them(results: Results) -> None:
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    assert results.runs(since=tomorrow) == []
    assert len(results.runs(until=tomorrow, since="1d")) == 10
    moment = results.runs()[0].created
    newest = results.runs(since=moment)
    assert newest and all(run.created >= moment for run in newest)


def test_histories_and_comparisons_are_those_of_the_commands(results: Results) -> None:
    (history,) = results.history("rate", case="edge=1")
    assert history.series.values == [1.5, 1.5]
    compared = results.compare("before", "after", metrics=["rate"])
    assert {row.metric for row in compared.rows} == {"rate"}
    assert compared.count("worse") == 0


def test_who_names_nothing_gets_the_trials_and_the_store_of_the_environment(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEATRIAL_TRIALS", str(folder))
    monkeypatch.setenv("SEATRIAL_STORE", str(tmp_path / "own.sqlite"))
    with open_results() as found:
        assert len(found.runs()) == 10
    assert (tmp_path / "own.sqlite").is_file()
    with open_results(store=tmp_path / "named.sqlite") as found:
        assert len(found.runs()) == 10
    assert (tmp_path / "named.sqlite").is_file()
    (tmp_path / "own.sqlite").unlink()
    with open_results(folder) as found:
        assert len(found.runs()) == 10
    assert not (tmp_path / "own.sqlite").exists(), "a folder that is named has its own"
    monkeypatch.delenv("SEATRIAL_STORE")
    monkeypatch.setenv("HOME", str(tmp_path))
    with open_results(store="~/at-home.sqlite") as found:
        assert len(found.runs()) == 10
    assert (tmp_path / "at-home.sqlite").is_file()


def test_what_is_wrong_is_told(results: Results, folder: Path) -> None:
    for wrong in (
        lambda: results.runs(tests_="x"),
        lambda: results.runs(since="soon"),
        lambda: results.trial("never"),
        lambda: results.history("never"),
        lambda: open_results(folder / "never"),
    ):
        with pytest.raises(seatrial.UsageError):
            wrong()


def test_the_import_is_light_and_offers_the_names() -> None:
    code = (
        "import sys, seatrial\n"
        "assert {'msgspec', 'numpy', 'sqlite3', 'click'}.isdisjoint(sys.modules)\n"
        "print(seatrial.open_results.__name__, seatrial.Results.__name__, seatrial.Figure.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["open_results", "Results", "Figure"]
    with pytest.raises(AttributeError):
        seatrial.nothing  # noqa: B018
