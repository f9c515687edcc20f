"""The page of one trial: what it says, what it links to, and where something is missing."""

from __future__ import annotations

import html
import json
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from seatrial.journal.events import TrialResumed
from seatrial.show.formatting import runs_of
from seatrial.units import SECOND_NS, show_seconds
from tests.programs import until
from tests.results.store.conftest import NEEDS_POSTGRES
from tests.results.store.postgres import shared_server
from tests.results.store.trials import a_trial

from .harbour import PART, TESTS, WHOLE, cut, rehearsed
from .lists import weekly
from .served import Served, open_page
from .test_now import driven

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture
def postgres_store() -> str:
    """A site's database, empty."""
    return shared_server().database()


def judged(served: Served, tag: str) -> Any:
    """The page's data, when all of it is there."""
    found: list[Any] = []

    def ready() -> bool:
        found[:] = [served.json(f"/trials/{tag}")]
        waited = ("status", "uses", "loads", "variability")
        return all(found[0][name] is not None for name in waited)

    until(ready, f"{tag} to be judged")
    return found[0]


def text_of(served: Served, path: str) -> str:
    status, page = served.get(path)
    assert status == 200, page
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())


def test_elapsed_times_say_whether_outliers_are_known(harbour: Served) -> None:
    judged(harbour, WHOLE)

    def known() -> bool:
        found = harbour.json(f"/trials/{WHOLE}/elapsed")
        assert found["judged"] in (False, True)
        return found["judged"] is True

    until(known, "outliers")


def test_a_trial_is_told_as_a_whole(harbour: Served) -> None:
    found = judged(harbour, WHOLE)
    about, trial = found["about"], found["trial"]
    assert (trial["plan"], trial["component"], about["kind"]) == ("p", "stability", "sustained")
    assert (about["nodes"], about["seed"], trial["rehearsed"]) == (8, 3, True)
    assert [test["test"] for test in found["tests"]] == list(TESTS)
    assert sum(test["accepted"] for test in found["tests"]) == trial["passed"]
    assert sum(cause["runs"] for cause in found["causes"]) == trial["failed"]
    assert {cause["name"] for cause in found["causes"]} >= {"failed", "timeout", "wrong answer"}
    assert [each[0]["label"] for each in found["status"]["criteria"]] == [
        "utilisation",
        "pass rate",
        "jobs in flight",
        "every test",
    ]
    assert [each[0]["state"] for each in found["status"]["criteria"]][1:3] == ["not met", "not met"]
    assert found["status"]["verdict"] == "not met"
    assert "clause 5.1, pass rate" in found["status"]["verdict_words"]
    assert "5.1 pass rate" in text_of(harbour, f"/trials/{WHOLE}")
    assert sum(found["uses"]["shares"].values()) == pytest.approx(1)
    assert found["reported"] == len(found["alerts"]) == 2
    assert found["status"]["excluded"][0][0] == "n6"
    assert [load["name"] for load in found["loads"]] == ["scratch/mdt0", "scratch/mdt1"]
    kinds = {row["case"] for row in found["variability"]["table"]}
    assert kinds == {"work@gcc", "tide@gcc", "short@gcc"}
    assert found["windows"][0]["text"] == "blackout of short: night"
    assert not found["trouble"]


def test_the_page_says_it_in_words_without_a_script(harbour: Served) -> None:
    judged(harbour, WHOLE)
    said = text_of(harbour, f"/trials/{WHOLE}")
    for words in (
        "rehearsed in virtual time on a simulated machine, by the chance of seed 3",
        "verdict: not met",
        "Accepted runs had",
        "scripts of runs that passed",
        "blackout of short: night",
        "no more runs go there",
        "1 failure there within 1 d 0 h: timeout",
        "scratch/mdt0",
        "The figure is drawn by JavaScript",
    ):
        assert words in said, words


def test_numbers_link_to_the_runs_behind_them(harbour: Served) -> None:
    found = judged(harbour, WHOLE)
    _, page = harbour.get(f"/trials/{WHOLE}")
    links = {html.unescape(link) for link in re.findall(r'href="(/runs\?[^"]+)"', page)}
    for cause in found["causes"]:
        for test, runs in cause["tests"]:
            link = runs_of(WHOLE, test, verdict=cause["name"])
            assert link in links
            status, text = harbour.get(link.replace("/runs?", "/runs.json?"))
            assert status == 200
            assert json.loads(text)["found"] == runs


def test_damage_in_the_journal_and_a_missing_driver_are_told(harbour: Served) -> None:
    found = judged(harbour, PART)
    assert found["trial"]["state"] == "interrupted"
    assert found["status"]["state"] == "interrupted"
    assert found["trial"]["damaged"] == found["standing"]["damaged"] == 1
    assert len(found["gaps"]) == 1
    said = text_of(harbour, f"/trials/{PART}")
    assert "1 line of the journal could not be read" in said
    assert "seatrial resume halfway" in said


def test_a_trial_without_a_plan_has_no_criteria(harbour: Served) -> None:
    found = judged(harbour, "weekly")
    assert found["status"]["criteria"] == []
    assert found["trial"]["rehearsed"] is False
    said = text_of(harbour, "/trials/weekly")
    assert "Criteria" not in said
    assert "rehearsed" not in said


def test_the_moments_of_a_trial_that_runs_are_told(tmp_path: Path) -> None:
    """The sentence on utilisation and the table beside it are of one moment, which it says."""
    trials = tmp_path / "trials"
    weekly(trials)
    with driven(trials / "weekly"), Served(trials) as served:
        judged(served, "weekly")
        said = text_of(served, "/trials/weekly")
    sentence = re.search(r"As of [\d:]{8} accepted runs had ([\d.]+\s%) of the node-hours", said)
    table = re.search(r"accepted scripts of runs that passed ([\d.]+\s%)", said)
    assert sentence and table, said
    assert sentence[1] == table[1]
    assert re.search(r"Utilisation [\d.]+\s% as of [\d:]{8}", said)


def test_a_trial_that_was_resumed_later_has_one_length(tmp_path: Path) -> None:
    trials = tmp_path / "trials"
    maker = a_trial(trials)
    maker.now += 300 * SECOND_NS
    maker.event(TrialResumed)
    maker.end(passed=False)
    with Served(trials) as served:
        judged(served, "nightly")
        length = show_seconds(served.json("/trials/nightly")["trial"]["elapsed"])
        assert length.startswith("5 m ")
        assert f"Time {length}" in text_of(served, "/trials/nightly")


def test_what_is_not_there_is_a_clear_page(harbour: Served) -> None:
    for path in ("/trials/nothing", "/trials/nothing/elapsed.json", "/trials/nothing.json"):
        status, text = harbour.get(path)
        assert status == 404
        assert "no trial 'nothing'" in html.unescape(text)
    status, text = harbour.get(f"/trials/{WHOLE}/utilisation.json?since=yesterday")
    assert status == 400
    assert "write seconds since 1970" in text
    status, text = harbour.get(f"/trials/{WHOLE}/utilisation.json?bins=0")
    assert status == 400


@pytest.mark.parametrize("database", ["sqlite", pytest.param("postgresql", marks=NEEDS_POSTGRES)])
def test_a_folder_that_is_gone_leaves_what_the_store_knows(
    tmp_path: Path, database: str, request: pytest.FixtureRequest
) -> None:
    store = request.getfixturevalue("postgres_store") if database == "postgresql" else ""
    trials = tmp_path / "trials"
    played = rehearsed(tmp_path / "made", "20m")
    cut(played.folder, trials / "lost", 1.0)
    with Served(trials, store=store) as served:
        until(lambda: served.json("/trials")["found"] == 1, "the journal to be read")
        before = judged(served, "lost")
        shutil.rmtree(trials / "lost")
        until(lambda: bool(served.json("/trials/lost")["trouble"]), "the loss to be seen")
        assert "What is shown is what the store knows" in text_of(served, "/trials/lost")
    with Served(trials, store=store) as served:
        found = served.json("/trials/lost")
        assert found["standing"] is found["status"] is found["uses"] is None
        assert f"{trials / 'lost'} is not there" in found["trouble"]
        assert found["trial"]["passed"] == before["trial"]["passed"]
        counts = [(test["test"], test["accepted"]) for test in found["tests"]]
        assert counts == [(test["test"], test["accepted"]) for test in before["tests"]]
        until(lambda: bool(served.json("/trials/lost/elapsed")["run"]), "its runs to be read")
        runs = served.json("/trials/lost/elapsed")
        assert len(runs["run"]) == len(runs["y"]) > 0
        assert all(isinstance(seconds, float) for seconds in runs["y"])
        assert served.json("/trials/lost/utilisation")["ready"] is False


def test_columns_of_the_figures_agree_with_each_other(harbour: Served) -> None:
    found = judged(harbour, WHOLE)
    uses = harbour.json(f"/trials/{WHOLE}/utilisation", bins=60)
    assert len(uses["t"]) == len(uses["shares"]["accepted"]) == 60
    for i in range(60):
        assert sum(share[i] for share in uses["shares"].values()) == pytest.approx(1, abs=0.01)
    finer = harbour.json(
        f"/trials/{WHOLE}/utilisation", bins=60, since=uses["t"][5], until=uses["t"][8]
    )
    assert finer["step"] < uses["step"] / 10
    runs = harbour.json(f"/trials/{WHOLE}/elapsed")
    columns = [len(runs[name]) for name in ("t", "y", "test", "kind", "run")]
    assert len(set(columns)) == 1
    trial = found["trial"]
    assert columns[0] + runs["left_out"] == trial["passed"] + trial["failed"]
    assert runs["t"] == sorted(runs["t"])
    named = {runs["kinds"][kind] for kind in runs["kind"]}
    assert named >= {"normal", "failed", "walltime"}
    one = harbour.json(f"/trials/{WHOLE}/elapsed", test="work")
    assert one["tests"] == ["work"]
    assert 0 < len(one["t"]) < columns[0]
    assert harbour.json(f"/trials/{WHOLE}/elapsed", test="nothing")["t"] == []
    flights = harbour.json(f"/trials/{WHOLE}/in-flight", test="tide")
    assert [line["name"] for line in flights["lines"]] == ["", "tide"]
    assert len(harbour.json(f"/trials/{WHOLE}/in-flight")["alerts"]) == 2
    loads = harbour.json(f"/trials/{WHOLE}/loads")
    assert [line["most"] for line in loads["lines"]] == [100, 100]


@pytest.mark.needs("chromium")
def test_without_javascript_the_tables_are_there(harbour: Served, browser: Browser) -> None:
    judged(harbour, WHOLE)
    with open_page(browser, harbour.address, java_script_enabled=False) as page:
        page.goto(f"/trials/{WHOLE}")
        assert page.locator("#uses .key tbody tr").count() >= 4
        assert page.locator("#failures-now tbody tr").count() >= 3
        assert page.locator("#variability-now tbody tr").count() >= 3
        assert page.locator("noscript").first.is_visible()
        page.locator("#variability-now a").first.click()
        assert page.locator("text=alone").first.is_visible()
