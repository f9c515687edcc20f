"""The page Ratio."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from seatrial.model import codes
from tests.results import test_ratios
from tests.results.figures import Measuring, bound

from . import frost
from .served import Served, open_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("ratio") / "trials"
    folder.mkdir()
    test_ratios.paper(folder)
    words = Measuring(
        folder, "words", [bound(i, order="ab"[i % 2], deck="xy"[i // 2]) for i in range(4)]
    )
    for number, case in enumerate(words.cases):
        words.measure(case, elapsed=1.0 + number)
    words.measure(words.cases[0], verdict=codes.TIMEOUT)
    words.done()
    with Served(folder) as running:
        running.until_read()
        yield running


def judged(served: Served, **query: Any) -> Any:
    return frost.judged(served, "/ratio", **{"trial": "ccm", "metric": "wall", **query})


def test_ways_and_sizes_are_chosen_by_themselves(served: Served) -> None:
    found = judged(served)
    gtc = found["records"][0]
    assert (gtc["of"], gtc["values"], gtc["x"]) == ("toolchain", ["native", "compat"], "tasks")
    assert gtc["cells"][2]["second"]["speedup"] == pytest.approx(8.2)
    html = served.get("/ratio?trial=ccm&metric=wall")[1]
    assert "native 11.6, compat 8.2, of 16" in html
    assert "over all: 1.02 fastest 16 .. 2.32 slowest 16" in html
    assert 'name="of" value="toolchain=native,compat"' in html
    assert html.count('class="drawn"') == 2 * 4 + 2, "single sizes have no speed-up"
    judged(served, fixed="1")
    html = served.get("/ratio?trial=ccm&metric=wall&fixed=1")[1]
    assert html.count('class="drawn"') == 4 + 2 and "constant resources" in html
    assert "speed-up from" not in html


def test_words_have_the_ratio_alone(served: Served) -> None:
    (table,) = judged(served, trial="words", metric="elapsed", of="order=a,b", x="deck")["records"]
    assert [cell["ratio"] for cell in table["cells"]] == pytest.approx([2, 4 / 3])
    html = served.get("/ratio?trial=words&metric=elapsed&of=order%3Da,b&x=deck")[1]
    assert html.count('class="drawn"') == 1 and "a: 1 timeout" in html
    assert "1.333 at deck y (unclear) .. 2 at deck x (unclear)" in html


def test_what_cannot_be_judged_is_said_beside_the_form(served: Served) -> None:
    for query, said in (
        ({"trial": "nope"}, "no trial"),
        ({"of": "toolchain"}, "“Ways” toolchain: is not a name with two values"),
        ({"x": "odd"}, "“Over” odd: is none of"),
        ({"metric": "odd"}, "“Metric” odd: no run has it"),
    ):
        found = judged(served, **query)
        assert found["state"] == "refused" and said in found["reason"], found["reason"]
    assert served.json("/ratio")["state"] == "asked"


@pytest.mark.needs("chromium")
def test_it_fits_a_telephone(served: Served, browser: Browser) -> None:
    judged(served)
    with open_page(browser, served.address, viewport={"width": 320, "height": 700}) as page:
        page.goto("/ratio?trial=ccm&metric=wall")
        page.wait_for_selector("table")
        assert page.evaluate("document.documentElement.scrollWidth") <= 320
