"""The page Best: settings ranked over any parameters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from ..studies.test_best import sweep
from . import frost
from .served import Served, open_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("best") / "trials"
    folder.mkdir()
    sweep(folder, "sweep")
    with Served(folder) as running:
        running.until_read()
        yield running


def judged(served: Served, **query: Any) -> Any:
    return frost.judged(served, "/best", **{"trial": "sweep", **query})


def test_settings_are_ranked(served: Served) -> None:
    found = judged(served)
    assert found["names"] == ["order", "stripe"]
    (panel,) = found["panels"]
    table = panel["table"]
    assert table["settings"][0]["values"] == {"order": "grid", "stripe": "4"}
    assert [one["verdict"] for one in table["settings"]].count("worse") == 6
    html = served.get("/best?trial=sweep")[1]
    assert "Cannot be told from the best: order=grid, stripe=16" in html
    assert "1 timeout, 1 out of memory" in html and 'scope="row">snake</th>' in html
    (least,) = judged(served, least=1)["panels"]
    assert least["table"]["statistic"] == "least"
    assert "Bound" in served.get("/best?trial=sweep&least=1")[1]


def test_what_cannot_be_ranked_is_said_beside_the_form(served: Served) -> None:
    for query, said in (
        ({"trial": "nope"}, "no trial"),
        ({"over": "odd"}, "“Over” odd: is none of"),
        ({"metric": "odd"}, "“Metric” odd: no run has it"),
        ({"over": "toolchain"}, "“Over” toolchain: no two cases differ in that alone"),
    ):
        found = judged(served, **query)
        assert found["state"] == "refused" and said in found["reason"], found["reason"]
    assert served.json("/best")["state"] == "asked"


@pytest.mark.needs("chromium")
def test_it_is_drawn_and_fits_a_telephone(served: Served, browser: Browser) -> None:
    judged(served)
    with open_page(browser, served.address, viewport={"width": 320, "height": 700}) as page:
        page.goto("/best?trial=sweep")
        page.wait_for_selector("table")
        assert page.locator("figure svg[role=img]:visible").count() == 1
        assert page.evaluate("document.documentElement.scrollWidth") <= 320
