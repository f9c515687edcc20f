"""Compare as people use it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.results.figures import Measuring, bound
from tests.results.test_provenance import make

from . import frost
from .served import Served, open_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser

PAGE = "/compare?before=before&after=after"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("compare") / "trials"
    folder.mkdir()
    frost.tell_pair(folder)
    made_up = Measuring(
        folder, "rehearsed", [bound(301, threads=1)], machine="frost", rehearsed=True
    )
    made_up.measure(made_up.cases[0])
    made_up.done()
    with Served(folder) as running:
        running.until_read()
        yield running


def judged(served: Served, **query: Any) -> Any:
    """The answer once it is judged."""
    return frost.judged(served, "/compare", **{"before": "before", "after": "after", **query})


def compared(served: Served, **query: Any) -> Any:
    """The comparison, with the verdicts of its rows."""
    (one,) = judged(served, **query)["records"]["comparisons"]
    return {**one, "counts": Counter(row["verdict"] for row in one["rows"])}


@pytest.mark.needs("chromium")
def test_two_trials_are_named_and_compared(served: Served, browser: Browser) -> None:
    from playwright.sync_api import expect

    with open_page(browser, served.address) as page:
        page.goto("/compare")
        page.fill("input[name=before]", "before")
        page.fill("input[name=after]", "after")
        page.keyboard.press("Enter")
        page.wait_for_selector("a:has-text('all 5')")
        assert page.get_by_text("1 row could not show a change of 2 %").count() == 1
        page.get_by_role("link", name="show it").click()
        page.wait_for_selector("a:has-text('all 10')")
        rows = page.locator("table").first.locator("tbody tr")
        assert rows.first.inner_text().startswith("worse")
        assert page.locator("figure svg[role=img]:visible").count() == 1
        page.get_by_role("link", name="1 better").click()
        page.wait_for_url("**verdict=better**")
        expect(rows).to_have_count(1)
        assert "hpl" in rows.first.inner_text()
        page.get_by_role("link", name="all 10").click()
        expect(rows).to_have_count(10)
        page.select_option("select[name=sort]", "case")
        page.get_by_role("button", name="Show").click()
        page.wait_for_url("**sort=case**")
        expect(rows.first).to_contain_text("<b>evil</b>")
        cases = rows.locator("td:nth-child(2)").all_inner_texts()
        assert cases == sorted(cases)
        page.get_by_role("link", name="triad").first.click()
        page.wait_for_url("**/history?metric=triad**")


@pytest.mark.needs("chromium")
def test_it_fits_a_telephone_and_the_dark(served: Served, browser: Browser) -> None:
    judged(served)
    size: Any = {"width": 320, "height": 700}
    with open_page(browser, served.address, viewport=size, color_scheme="dark") as page:
        page.goto(PAGE)
        drawn = page.locator("figure svg:visible")
        drawn.wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") <= 320
        size = drawn.locator("text").first.evaluate("text => text.getBoundingClientRect().height")
        assert size > 8, "its words can be read"
        shown = drawn.locator("text").all_text_contents()
        assert "stream{threads=2} triad" in shown, "whole"


def test_the_judgement_is_that_of_the_command(served: Served) -> None:
    found = compared(served, elapsed="1")
    assert found["counts"] == {"worse": 1, "better": 1, "unclear": 2, "same": 4, "missing": 2}
    worst = found["rows"][0]
    assert (worst["case"], worst["metric"], worst["verdict"]) == (
        *("stream{threads=2}", "triad", "worse"),
    )
    assert worst["ratio"] == pytest.approx(0.91, abs=0.005)
    missing = [row for row in found["rows"] if row["verdict"] == "missing"]
    assert all(row["second"]["excluded"] == {"timeout": 1} for row in missing)
    assert {one["subject"] for one in found["differences"]} == {"seatrial"}


def test_metrics_tests_and_what_matters_are_chosen(served: Served) -> None:
    assert {row["metric"] for row in compared(served, metric="tri*")["rows"]} == {"triad"}
    assert {row["test"] for row in compared(served, test="hpl")["rows"]} == {"hpl"}
    assert compared(served, least="20%", metric="triad")["counts"] == {"same": 2, "missing": 1}


def test_rows_are_chosen_and_sorted(served: Served) -> None:
    assert len(compared(served, rows=3)["rows"]) == 3
    assert "and 2 more<a href=" in served.get(f"{PAGE}&rows=3")[1]
    assert compared(served, verdict="better")["counts"] == {"better": 1}
    gains = [row["gain"] for row in compared(served, sort="change")["rows"]]
    told = [gain for gain in gains if gain is not None]
    assert told == sorted(told) and gains[: len(told)] == told, "the worst first"
    assert compared(served, sort="verdict") == compared(served)
    metrics = [row["metric"] for row in compared(served, sort="metric")["rows"]]
    assert metrics == sorted(metrics)


def test_a_rehearsed_side_is_marked(served: Served) -> None:
    assert judged(served, after="rehearsed")["rehearsed"]
    found = compared(served, after="rehearsed")
    assert "rehearsed" in found["notices"][0]
    _, html = served.get("/compare?before=before&after=rehearsed")
    assert 'class="notice rehearsal"' in html
    assert "figures of a rehearsal, which were never measured" in found["doubts"]
    assert '<p class="notice">undecided: ' in html
    for query in ({"after": "rehearsed:odd=1"}, {"after": "rehearsed", "test": "nope"}):
        refused = judged(served, **query)
        assert refused["state"] == "refused" and refused["rehearsed"], refused["reason"]
    assert not judged(served, after="nope")["rehearsed"]


def test_patterns_choose_rehearsals_where_these_are_asked_for(served: Served) -> None:
    assert "no trial fits" in judged(served, after="rehear*")["reason"]
    found = judged(served, after="rehear*", rehearsed="1")
    assert (found["state"], found["rehearsed"]) == ("judged", True)
    assert not judged(served, rehearsed="1")["rehearsed"]  # of trials that are named
    refused = judged(served, after="@test=nope", rehearsed="1")
    assert (refused["state"], refused["rehearsed"]) == ("refused", True)


def test_what_cannot_be_compared_is_said_beside_the_form(served: Served) -> None:
    for sides, said in (
        ({"after": "nope"}, "no trial"),
        ({"after": ":x"}, "names no trial"),
        ({"after": "after:odd=1"}, "is no condition"),
        ({"across": "nothing"}, "“Across” nothing: no case has this parameter"),
    ):
        found = judged(served, **sides)
        assert found["state"] == "refused" and said in found["reason"]
    status, html = served.get("/compare?before=%3Cscript%3E&after=x")
    assert status == 200 and "<script>" not in html.partition("<body>")[2]
    status, html = served.get(f"{PAGE}&least=lots")
    assert status == 400 and "“What matters” &#39;lots&#39; is no share" in html
    assert "<label>Across <input" in html and '<label>What matters <input name="least"' in html
    assert 'value="lots"' in html and 'name="before" value="before"' in html


def test_two_sides_are_to_be_named(served: Served) -> None:
    assert served.json("/compare")["state"] == "asked"
    html = served.get("/compare")[1]
    assert '<a href="/compare?before=before&amp;after=after">The latest trial with' in html
    assert '<option value="rehearsed">' in html, "what the form suggests"


def test_what_is_drawn_is_the_change_of_the_table(served: Served) -> None:
    judged(served, metric="time")
    html = served.get(f"{PAGE}&metric=time")[1]
    assert "+5.7 % better" in html and "-5.7 %" not in html


def test_what_differs_without_short_words_says_so(tmp_path: Path) -> None:
    trials = tmp_path / "trials"
    for tag in ("before", "after"):
        folder = make(trials, tag).folder.environments
        folder.mkdir()
        (folder / tag).write_text(f'declare -x OMP_NUM_THREADS="{len(tag)}"\n')
    with Served(trials) as running:
        running.until_read()
        judged(running)
        page = running.get(PAGE)[1]
    assert "<td>OMP_NUM_THREADS (they differ)</td>" in page.replace(' class="text"', "")
