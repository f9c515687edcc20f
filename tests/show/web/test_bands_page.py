"""The page Bands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.results import pingpongs

from . import frost
from .served import Served, open_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser


def odd_and_kinds(a: int, b: int, x: int, y: int) -> float:
    slow = 300 if (a, b) == (2, 6) else 0
    return pingpongs.by_level(a, b, x, y) * (1.3 if x else 1) * (1.3 if y else 1) + slow


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("bands") / "trials"
    folder.mkdir()
    pingpongs.tell(folder, "bands", [pingpongs.output(odd_and_kinds, cores=2)])
    pingpongs.tell(folder, "torn", [pingpongs.output()[:-20]])
    pingpongs.tell(folder, "none", [])
    with Served(folder) as running:
        running.until_read()
        yield running


def test_levels_steps_odd_pairs_and_cores(served: Served) -> None:
    found = frost.judged(served, "/bands", trial="bands")
    assert found["state"] == "judged"
    latency = found["records"]["latency"]
    assert [band["level"] for band in latency["bands"]] == ["router", "chassis", "system"]
    assert [(odd["first"], odd["second"]) for odd in latency["odd"]] == [("n3", "n7")]
    html = served.get("/bands?trial=bands")[1]
    assert html.count("<svg") >= 2 and "n3-n7" in html and "chassis against router: " in html
    assert "0 to 0" in html and "us a hop" in html
    assert ">modes (share)</th>" in html and 'href="/machines/placed"' in html
    assert "/history?machine=placed&amp;metric=latency_by_level" in html


def test_what_cannot_be_judged_is_said(served: Served) -> None:
    assert served.json("/bands")["state"] == "asked"
    torn = frost.judged(served, "/bands", trial="torn")
    assert torn["state"] == "refused" and "closing line" in torn["reason"]
    assert "run the probe" in frost.judged(served, "/bands", trial="none")["reason"]
    status, html = served.get("/bands?trial=nope")
    assert status == 404 and "no trial" in html and 'name="trial"' in html


def test_over_time(served: Served) -> None:
    assert ">latency_by_level</a>" in served.get("/history")[1]
    found = frost.judged(served, "/history", metric="latency_by_level")
    lines = {line["case_name"].rpartition(": ")[2]: line for line in found["records"]}
    assert [*lines] == ["router", "chassis", "system"]
    case = lines["system"]["case"]
    (line,) = frost.judged(served, "/history", metric="latency_by_level", case=case)["records"]
    assert len(line["modes"][0]["modes"]) == 3
    html = served.get(f"/history?metric=latency_by_level&case={case}")[1]
    assert ">pairs from</th>" in html and re.search(r'class="num">4[67]\.\d %<', html)


@pytest.mark.needs("chromium")
def test_it_fits_a_telephone(served: Served, browser: Browser) -> None:
    frost.judged(served, "/bands", trial="bands")
    with open_page(browser, served.address, viewport={"width": 320, "height": 700}) as page:
        page.goto("/bands?trial=bands")
        page.wait_for_selector("table")
        assert page.evaluate("document.documentElement.scrollWidth") <= 320
