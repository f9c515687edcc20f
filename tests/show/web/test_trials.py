"""The list of trials and its filters."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from seatrial.model.codes import KNOWN
from tests.results.store.trials import TrialMaker, a_case

from .harbour import PART, WHOLE
from .served import Served, open_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser


def tags(found: Any) -> set[str]:
    return {trial["tag"] for trial in found["trials"]}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, {"nightly", "weekly"}),  # rehearsals are left out where there is anything else
        ({"rehearsed": "also"}, {WHOLE, PART, "nightly", "weekly", "dream"}),
        ({"machine": "toy"}, {WHOLE, PART}),
        ({"plan": "p"}, {WHOLE, PART}),
        ({"plan": "p", "state": "ended"}, {WHOLE}),
        ({"state": "interrupted", "rehearsed": "also"}, {PART, "weekly"}),
        ({"rehearsed": "no"}, {"nightly", "weekly"}),
        ({"rehearsed": "only"}, {WHOLE, PART, "dream"}),
        ({"q": "EEK"}, {"weekly"}),
        ({"machine": "nowhere"}, set()),
    ],
)
def test_trials_are_chosen_by_filters(
    harbour: Served, query: dict[str, str], expected: set[str]
) -> None:
    found = harbour.json("/trials", **query)
    assert tags(found) == expected
    assert found["found"] == len(expected)


def test_a_limit_shows_the_newest(harbour: Served) -> None:
    found = harbour.json("/trials", limit=2, rehearsed="also")
    assert len(found["trials"]) == 2
    assert found["found"] == 5


def test_a_filter_that_is_none_is_refused(harbour: Served) -> None:
    status, text = harbour.get("/trials.json?state=asleep")
    assert status == 400
    assert "one of running, paused" in text


def test_known_failures_have_a_column_where_there_are_some(harbour: Served, tmp_path: Path) -> None:
    assert ">Known</th>" not in harbour.get("/trials")[1]
    case = a_case(1)
    maker = TrialMaker(tmp_path, "t", [case])
    maker.start()
    maker.run(case, "right")
    maker.run(case, "failed", verdict=KNOWN)
    maker.write()
    with Served(tmp_path) as served:
        _, text = served.get("/trials")
    assert ">Known</th>" in text
    assert re.search(r'data-label="known"><a href="/runs\?[^"]*state=known[^"]*">1</a>', text)


@pytest.mark.needs("chromium")
def test_filters_work_as_one_types_and_stay_in_the_address(
    harbour: Served, browser: Browser
) -> None:
    from playwright.sync_api import expect

    with open_page(browser, harbour.address) as page:
        page.goto("/trials?rehearsed=also")
        rows = page.locator("#list tbody tr")
        assert rows.count() == 5
        page.locator("select[name=machine]").select_option("toy")
        expect(rows).to_have_count(2)
        assert "machine=toy" in page.url
        page.locator("input[name=q]").fill("half")
        expect(rows).to_have_count(1)
        page.reload()
        assert rows.count() == 1
        assert page.locator("select[name=machine]").input_value() == "toy"
        rows.locator("th a").click()
        page.wait_for_url(f"**/trials/{PART}")
        assert page.locator("h1").inner_text().startswith(PART)
