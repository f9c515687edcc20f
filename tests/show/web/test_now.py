"""The page Now: what runs, what ended lately, and how to begin where there is nothing."""

from __future__ import annotations

import fcntl
import html
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from seatrial.journal.events import BuildEnded, BuildStarted
from seatrial.plugins.sinks.lifetime import Cursor
from tests.programs import until
from tests.results.store.trials import TrialMaker, a_case

from .harbour import WHOLE, cut, rehearsed
from .lists import weekly
from .served import Served, open_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@contextmanager
def driven(trial: Path) -> Iterator[None]:
    """As if a process drove the trial."""
    with (trial / "journal.jsonl.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write(f"seatrial, process {os.getpid()} on {os.uname().nodename}")
        lock.flush()
        yield


def running(served: Served) -> Any:
    """The one trial that runs, when it is judged."""
    found: list[Any] = []

    def ready() -> bool:
        found[:] = served.json("/")["running"]
        return len(found) == 1 and found[0]["status"] is not None

    until(ready, "the trial that runs")
    return found[0]


def test_an_empty_store_says_how_to_begin(tmp_path: Path) -> None:
    with Served(tmp_path / "trials") as served:
        found = served.json("/")
        assert (found["running"], found["lately"], found["trials"]) == ([], [], 0)
        status, page = served.get("/")
        assert status == 200
        assert "There are no trials in" in page
        assert "seatrial run" in page


def test_trials_that_ended_lately_have_their_verdicts(harbour: Served) -> None:
    until(
        lambda: all(one["verdict"] is not None for one in harbour.json("/")["lately"]),
        "the verdicts",
    )
    found = {one["trial"]["tag"]: one for one in harbour.json("/")["lately"]}
    assert found.keys() == {"nightly", "weekly"}, "rehearsals are elsewhere"
    assert harbour.json("/")["rehearsals"] == 3
    assert found["nightly"]["verdict"] == ""
    _, page = harbour.get("/")
    assert 'href="/trials?rehearsed=only">3 rehearsals' in page
    assert "Nothing runs now." in html.unescape(page)


def test_a_damaged_journal_is_told_on_now_and_on_its_trial(tmp_path: Path) -> None:
    maker = weekly(tmp_path / "trials")
    journal = maker.folder.journal
    lines = journal.read_bytes().splitlines(keepends=True)
    number = next(number for number, line in enumerate(lines) if b'"check_end"' in line)
    lines[number] = lines[number].replace(b'"value":0', b'"value":8')
    journal.write_bytes(b"".join(lines))
    with Served(tmp_path / "trials") as served:
        until(lambda: len(served.json("/")["lately"]) == 1, "the trial")
        assert served.json("/")["lately"][0]["trial"]["damaged"] == 1
        _, page = served.get("/")
        assert "1 line of its journal could not be read" in html.unescape(page)
        _, page = served.get("/trials/weekly")
        assert f"1 line from line {number + 1} on" in html.unescape(page)
        assert "seatrial resume weekly" in page


def test_a_trial_that_runs_is_shown_with_targets_alerts_and_criteria(tmp_path: Path) -> None:
    played = rehearsed(tmp_path / "made")
    trial = cut(played.folder, tmp_path / "trials" / "going", 0.6)
    with driven(trial), Served(tmp_path / "trials") as served:
        found = running(served)
        assert found["trial"]["state"] == "running"
        tests = {test["test"]: test for test in found["tests"]}
        assert {name: test["expected"] for name, test in tests.items()} == {
            "short": 1,
            "tide": 1,
            "work": 2,
        }
        assert sum(test["in_flight"] for test in tests.values()) > 0
        assert 0 < found["status"]["utilisation"] < 1
        assert found["status"]["criteria"][0][0]["label"] == "utilisation"
        assert len(found["latest"]) == 8
        judged = [run["judged"] for run in found["latest"]]
        assert judged == sorted(judged, reverse=True)
        _, page = served.get("/")
        assert "Criteria so far" in page
        assert ">expected</th>" in page


def test_a_running_trial_without_a_plan_is_shown_by_its_tests(tmp_path: Path) -> None:
    trials = tmp_path / "trials"
    weekly(trials)
    with driven(trials / "weekly"), Served(trials) as served:
        found = running(served)
        assert found["status"]["criteria"] == []
        assert found["trial"]["running"] == 1
        assert {test["test"] for test in found["tests"]} == {"stream", "io/write", "hpl"}
        _, page = served.get("/")
        assert "1 again" in page and "verdict=again" not in page, "no list of runs has it"
        assert "&amp;verdict=failed" in page


def test_builds_that_go_on_or_failed_and_sinks_that_lag_are_shown(tmp_path: Path) -> None:
    trials = tmp_path / "trials"
    cases = [a_case(1, build="k1"), a_case(2, test="waves", build="k2"), a_case(3, build="k3")]
    maker = TrialMaker(trials, "building", cases)
    maker.start()
    for key in ("k1", "k2", "k3"):
        maker.event(BuildStarted, key=key, path=f"/builds/{key}")
    maker.event(BuildEnded, key="k1", path="/builds/k1", code=0)
    maker.event(BuildEnded, key="k2", path="/builds/k2", code=1, log="no compiler")
    maker.write()
    cursor = Cursor(sink="site", kind="influxdb", to="influx.site", error="it does not answer")
    (maker.folder.path / "sinks").mkdir()
    (maker.folder.path / "sinks" / "site.json").write_bytes(msgspec.json.encode(cursor))
    with driven(maker.folder.path), Served(trials) as served:
        found = running(served)
        counts = {name: found["builds"][name] for name in ("built", "building", "failed")}
        assert counts == {"built": 1, "building": 1, "failed": 1}
        shown = [(build["state"], build["tests"]) for build in found["builds"]["shown"]]
        assert shown == [("building", ["stream"]), ("failed", ["waves"])]
        assert found["sinks"][0]["error"] == "it does not answer"
        assert found["sinks"][0]["behind"]["events"] == 6
        _, page = served.get("/")
        assert "it does not answer" in page
        assert "/builds/k2" in page


@pytest.mark.needs("chromium")
def test_nothing_is_wider_than_a_wide_window(harbour: Served, browser: Browser) -> None:
    """A narrow one: ``test_style.py``."""
    with open_page(browser, harbour.address, viewport={"width": 2560, "height": 900}) as page:
        for path in ("/", "/trials", f"/trials/{WHOLE}"):
            page.goto(path)
            page.locator("main h1").wait_for()
            over = page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert over <= 0, path
