"""Open pages while a real trial runs: what happens is on the screen within a second."""

from __future__ import annotations

import signal
import statistics
import time
from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from seatrial.execute.requests import Request, ask
from seatrial.journal.events import RunJudged
from seatrial.model import codes
from tests.programs import Driving, Workplace, until
from tests.slurm.daemons import free_ports

from .served import Served, open_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.needs("chromium")

TAG = "harbour-stability"
SECONDS = 5
MORE_S = 3.0
SOON_S = 5.0  # a second where nobody else computes
ENOUGH = 12  # runs that passed while they were watched

# Notes each number of runs that passed, with the time at which the page showed it.
WATCH = """() => {
  window.seen = [];
  const look = () => {
    const all = [...document.querySelectorAll(".now dl.figures > div")];
    const passed = all.find((each) => each.querySelector("dt").textContent === "Passed");
    if (!passed) return;
    const number = Number(passed.querySelector("a").textContent.replace(/\\D/g, ""));
    if (seen.length === 0 || seen.at(-1)[1] !== number) seen.push([Date.now(), number]);
  };
  new MutationObserver(look).observe(document.body, { subtree: true, childList: true });
  look();
}"""


def make_plan(place: Workplace) -> str:
    """A sustained component of a few seconds, of runs of a fraction of one."""
    place.local(cores=4)
    place.test("quick", "sleep 0.3", run={"walltime": "5s"})
    place.test("poor", "sleep 0.5; false", run={"walltime": "5s"})
    component = {
        "component": "stability",
        "kind": "sustained",
        "duration": f"{SECONDS}s",
        "tests": {"quick": {"copies": 2}, "poor": {"copies": 1}},
        "criteria": [{"criterion": "accepted_runs", "at_least": 3, "tests": ["quick"]}],
    }
    plan = {"plan": "harbour", "machine": "machine.yaml", "suites": ["suite"]}
    file = place.folder / "plan.yaml"
    file.write_text(yaml.safe_dump({**plan, "components": [component]}))
    return str(file)


def delays(place: Workplace, seen: list[list[float]]) -> list[float]:
    """Seconds from each verdict to its being on the screen."""
    ends = [
        event.time / 1e9
        for event in place.events(TAG, RunJudged)
        if event.code == codes.PASS.number
    ]
    found = []
    for (_, before), (shown, number) in pairwise(seen):
        found += [shown / 1000 - ends[i] for i in range(int(before), int(number))]
    return found


def drawn(page: Page) -> int:
    """How often the plot was drawn; 0 in the moment in which it is replaced."""
    figure = """document.querySelector('figure[data-plot="elapsed"]')"""
    return int(page.evaluate(f"Number({figure}?.dataset.drawn ?? 0)"))


class Goes:
    """A trial of seconds goes on for longer where a slow machine has not shown all of it yet."""

    def __init__(self, place: Workplace, driving: Driving) -> None:
        self._place = place
        self._driving = driving
        self._next = time.monotonic() + MORE_S

    def until(self, condition: Callable[[], bool], what: str) -> None:
        def look() -> bool:
            if time.monotonic() > self._next:
                self.longer()
            return condition()

        self._driving.until(look, what)

    def longer(self) -> None:
        self._next += MORE_S
        ask(self._place.trial(TAG), Request(request="extend", value=MORE_S))


def test_pages_follow_a_real_trial_to_its_end(place: Workplace, browser: Browser) -> None:
    from playwright.sync_api import expect

    plan = make_plan(place)
    with Served(place.trials) as served, open_page(browser, served.address) as now:
        now.goto("/")
        assert "There are no trials in" in now.locator("#running").inner_text()
        with place.start("accept", plan, "-q") as driving:
            shown = now.locator(f"article.now >> text={TAG}")  # without being asked for again
            driving.until(place.trial(TAG).journal.exists, "the trial")
            goes = Goes(place, driving)
            goes.until(lambda: shown.count() > 0, "it to be shown")
            now.evaluate(WATCH)
            row = now.locator("article.now .tests tbody tr", has_text="quick")
            goes.until(lambda: row.locator("td").nth(1).inner_text() == "2", "of target")
            text = now.locator("article.now")
            goes.until(lambda: "accepted runs of quick" in text.inner_text(), "the criterion")
            goes.longer()  # nothing is looked at while a page opens
            with open_page(browser, served.address) as page:
                page.goto(f"/trials/{TAG}")
                page.locator('figure[data-plot="elapsed"][data-drawn]').scroll_into_view_if_needed()
                before, passed = drawn(page), page.locator("dl.figures").inner_text()
                figures = page.locator("dl.figures")
                goes.until(lambda: drawn(page) > before, "new runs in the plot")
                goes.until(lambda: figures.inner_text() != passed, "new figures")
                driving.end()
                expect(page.locator("#head .state").first).to_have_text("ended")
                expect(page.locator("#head")).to_contain_text(
                    "verdict: not met"
                )  # a test is always wrong
        expect(now.locator("#running")).to_contain_text("Nothing runs now.")
        expect(now.locator("#lately tbody tr").first).to_contain_text("met")
        seen: list[Any] = now.evaluate("window.seen")
    took = delays(place, seen)
    assert len(took) >= ENOUGH, seen
    assert statistics.median(took) < SOON_S, sorted(took)


def test_a_part_in_which_one_types_or_has_marked_text_is_left_alone(
    place: Workplace, browser: Browser
) -> None:
    place.test("hello")
    assert place.run("--name", "first").code == 0
    with Served(place.trials) as served, open_page(browser, served.address) as page:
        page.goto("/trials")
        until(lambda: page.locator("#live").get_attribute("data-state") == "on", "the stream")
        page.evaluate(
            """() => {
              window.news = 0;
              document.addEventListener("news", () => { window.news++; });
              document.getSelection().selectAllChildren(document.querySelector("#list th"));
            }"""
        )
        assert place.run("--name", "second").code == 0
        until(lambda: served.json("/trials")["found"] == 2, "the second trial")
        until(lambda: page.evaluate("window.news") > 0, "the news")
        assert page.locator("#list tbody tr").count() == 1
        page.evaluate("() => document.getSelection().removeAllRanges()")
        assert place.run("--name", "third").code == 0
        page.locator("#list tbody tr >> nth=2").wait_for()


def test_a_stream_that_breaks_is_told_and_taken_up_again(
    place: Workplace, browser: Browser
) -> None:
    place.test("hello")
    assert place.run("--name", "first").code == 0
    (port,) = free_ports(1)  # which no client's connection is given meanwhile
    with (
        Served(place.trials, port=port) as served,
        browser.new_context(base_url=served.address) as context,
    ):
        page = context.new_page()
        page.goto("/")
        page.locator('#live[data-state="on"]').wait_for()
        served.process.send_signal(signal.SIGTERM)
        page.locator('#live[data-state="off"]').wait_for()
        served.process.wait()
        assert place.run("--name", "second").code == 0
        with Served(place.trials, port=port):
            page.locator('#live[data-state="on"]').wait_for()
            page.locator("#lately >> text=second").wait_for()
