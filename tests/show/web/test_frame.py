"""What every page has around it: the bar, the foot, clocks that go on."""

from __future__ import annotations

import time
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from seatrial.show.formatting import counted, message, zone
from seatrial.show.web.routes import areas
from tests.programs import until

from .lists import make_site
from .served import Served, open_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser

CLOCK = '<span class="clock" data-clock="{}">{}</span>'


def test_the_foot_names_the_zone(harbour: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    assert f"times in {zone()}" in harbour.get("/runs")[1]
    for name, said in (("UTC", "UTC"), ("Asia/Kolkata", "UTC+05:30 (IST)")):
        monkeypatch.setenv("TZ", name)
        time.tzset()
        assert zone() == said
    monkeypatch.undo()
    time.tzset()
    assert zone().startswith("UTC")
    assert datetime.now().astimezone().tzinfo is not None


def test_a_trial_names_the_command_for_its_report(harbour: Served) -> None:
    assert "<code>seatrial report weekly</code>" in harbour.get("/trials/weekly")[1]


def test_networks_are_in_the_bar(harbour: Served) -> None:
    assert ("networks", "Networks", "/network") in areas()
    assert '<a href="/network" aria-current="page">Networks</a>' in harbour.get("/network")[1]


@pytest.mark.needs("chromium")
def test_the_bar_has_room(browser: Browser, harbour: Served) -> None:
    """A narrow bar is moved to where one is; the page is no wider than the screen."""
    with open_page(browser, harbour.address) as page:
        for width in (320, 768, 1280):
            page.set_viewport_size({"width": width, "height": 900})
            page.goto("/network")
            assert page.evaluate("document.documentElement.scrollWidth") == width
            page.locator("#live[data-state=on]").wait_for(state="attached")
            box = page.locator("nav a[aria-current]").bounding_box()  # nobody moved the bar
            assert box is not None
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= width


@pytest.mark.needs("chromium")
def test_a_clock_goes_on_while_the_page_is_live(browser: Browser, harbour: Served) -> None:
    with open_page(browser, harbour.address) as page:
        page.clock.install()
        page.goto("/")
        page.locator("#live[data-state=on]").wait_for(state="attached")
        added = "document.getElementById('content').insertAdjacentHTML('afterbegin', {!r})"
        soon = page.evaluate("Date.now()") / 1000 + 1
        page.clock.pause_at(datetime.fromtimestamp(soon))  # from now on no time passes by itself
        page.evaluate(added.format(CLOCK.format(0.15, "150 ms")))
        clock = page.locator("[data-clock]")
        page.clock.run_for(3000)
        assert clock.text_content() in ("2 s", "3 s")  # by the place of its second
        page.clock.run_for(69000)
        shown = clock.text_content()
        assert shown is not None
        assert shown.startswith("1 m 1")
        page.evaluate("document.getElementById('live').dataset.state = 'off'")
        page.clock.run_for(3000)
        assert clock.text_content() == shown


def test_a_page_of_what_failed_says_it_once(tmp_path: Path) -> None:
    make_site(tmp_path / "trials")
    with Served(tmp_path / "trials", constants={"show.web.server_state.WAIT_S": 0.3}) as served:
        until(lambda: served.json("/runs")["total"] > 0, "the journals to be read")
        for file in (tmp_path / "trials").glob("store.sqlite*"):
            file.unlink()
        (tmp_path / "trials" / "store.sqlite").write_bytes(b"no database at all\n" * 100)
        until(lambda: served.get("/")[0] == 503, "it to be seen")
        page = served.get("/failures")[1]
        assert page.count("store.sqlite: is no") == 1
        assert "What is shown may be old" not in page


def test_what_is_to_be_typed_is_code_and_nothing_else_is_markup() -> None:
    assert message("see `seatrial trials`") == "see <code>seatrial trials</code>"
    assert message("no `<b>` & no ` end") == "no <code>&lt;b&gt;</code> &amp; no ` end"
    assert counted(1, "run") == "1 run"
    assert counted(2000, "run") == "2,000 runs"
