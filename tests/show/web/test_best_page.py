"""The page Best, and what the page Compare has of ladders and spreads."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest

from tests.results import test_constant_resources, test_ladder, test_spread_comparison
from tests.results.figures import TIME, TRIAD, Measuring, bound, io_sweep, steady
from tests.results.test_best import sweep

from . import frost
from .served import Served, open_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("best") / "trials"
    folder.mkdir()
    sweep(folder, "sweep")
    io_sweep(folder)
    both = Measuring(folder, "both", [bound(n, order=n) for n in (1, 2)])
    for case in both.cases:
        both.measure(case, {TRIAD: 100.0, TIME: 2.0})
    both.done()
    large(folder)
    test_ladder.versions(folder, {"v0": 224.0, "v1": 140.0, "v2": 100.0})
    test_spread_comparison.sides(folder)
    test_constant_resources.sweep(folder, test_constant_resources.DIP)
    with Served(folder) as running:
        running.until_read()
        yield running


def large(trials: Path) -> None:
    """A trial with figures of five digits and more; on more nodes another order is ahead."""
    settings = [(nodes, order) for nodes in (1, 2) for order in ("near", "far")]
    cases = [bound(n, nodes=nodes, order=order) for n, (nodes, order) in enumerate(settings, 1)]
    trial = Measuring(trials, "large", cases)
    for case, triad in zip(cases, (48120.0, 41300.0, 60250.0, 81400.0), strict=True):
        trial.series(case, TRIAD, steady(triad, 6))
    trial.done()


def judged(served: Served, **query: Any) -> Any:
    return frost.judged(served, "/best", **{"trial": "sweep", **query})


def test_settings_are_ranked(served: Served) -> None:
    found = judged(served)
    (table,) = found["records"]
    assert table["settings"][0]["values"] == {"order": "grid", "stripe": "4"}
    assert [one["verdict"] for one in table["settings"]].count("worse") == 6
    html = served.get("/best?trial=sweep")[1]
    assert "cannot be told from the best: order=grid, stripe=16" in html
    assert "1 timeout, 1 out of memory" in html and ">order by stripe</th>" in html
    assert 'id="over-values"><option value="order"><option value="stripe">' in html
    assert '<span class="judged better">100.0 %</span>' in html, "on the plateau"
    (least,) = judged(served, least=1)["records"]
    assert least["statistic"] == "least"
    assert ">bound</th>" in served.get("/best?trial=sweep&least=1")[1]


def test_figures_of_five_digits_have_commas(served: Served) -> None:
    """In tables, and in sentences about them. The command writes them without."""
    for path, words, more in (
        ("/best", "best: nodes=2, order=far: 81,", {}),
        ("/scaling", "MB/s, by the medians", {"x": "nodes", "by": "order"}),
        ("/matrix", '<span class="judged better">81,', {"by": "order", "cases": "1"}),
    ):
        query = {"trial": "large", "metric": "triad", **more}
        frost.judged(served, path, **query)
        html = served.get(f"{path}?{urlencode(query)}")[1].replace("\N{NO-BREAK SPACE}", " ")
        study = re.sub("<svg.*?</svg>", "", html[html.index('id="study"') :], flags=re.DOTALL)
        assert words in study, path
        assert not re.search(r"\b[4-8]\d{4}\b", study), path
    frost.judged(served, "/records", metric="triad")
    html = served.get("/records?metric=triad")[1].replace("\N{NO-BREAK SPACE}", " ")
    assert re.search(r"best measured: \d\d,\d{3} MB/s on frontier, the best of", html)


def test_of_several_figures_one_is_shown_without_an_option(served: Served) -> None:
    judged(served, trial="both")
    frost.judged(served, "/scaling", trial="both", x="order")
    for path in ("/best?trial=both", "/scaling?trial=both&x=order"):
        html = served.get(path)[1]
        assert "is one of 2 figures" in html and "--metric" not in html


def test_a_default_is_a_setting_and_cases_in_no_table_are_counted(served: Served) -> None:
    (table,) = judged(served, trial="io1")["records"]
    assert len(table["settings"]) == 16
    judged(served, trial="io1 sweep", over="order")
    html = served.get("/best?trial=io1+sweep&over=order")[1]
    assert "left out: 16 cases without order" in html
    matrix = frost.judged(served, "/matrix", trial="io1 sweep", by="writers")
    assert matrix["records"]["columns"] == ["1", "2"]
    assert (
        "left out: 9 cases without writers" in served.get("/matrix?trial=io1+sweep&by=writers")[1]
    )


def test_drops_of_constant_resources_are_told(served: Served) -> None:
    judged(served, trial="t", over="threads")
    frost.judged(served, "/scaling", trial="t", x="threads", metric="triad")
    for page in ("/best?trial=t&over=threads", "/scaling?trial=t&x=threads&metric=triad"):
        html = served.get(page)[1]
        assert "% from threads 2 to 4 (95 %: " in html
        assert "at 4 alone: 8 is faster" in html
        assert html.count("drops by") == 3


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


def test_compare_has_ladders_and_spreads(served: Served) -> None:
    found = frost.judged(served, "/compare", before="v0", between="v1", after="v2")
    (one,) = found["records"]["ladders"]
    assert [round(step["times"], 2) for step in (*one["steps"], one["product"])] == [1.6, 1.4, 2.24]
    html = served.get("/compare?before=v0&between=v1&after=v2")[1]
    assert "Each side beside the one before" in html and "x2.24 better" in html
    found = frost.judged(served, "/compare", before="a", after="b", spread=1)
    (spread,) = found["records"]["spreads"]
    assert spread["rows"][0]["verdict"] == "less steady" and not found["records"]["ladders"]
    assert "Robust deviation of B" in served.get("/compare?before=a&after=b&spread=1")[1]


@pytest.mark.needs("chromium")
def test_it_is_drawn_and_fits_a_telephone(served: Served, browser: Browser) -> None:
    judged(served)
    with open_page(browser, served.address, viewport={"width": 320, "height": 700}) as page:
        page.goto("/best?trial=sweep")
        page.wait_for_selector("table")
        assert page.locator("figure svg[role=img]:visible").count() == 1
        assert page.evaluate("document.documentElement.scrollWidth") <= 320
