"""Gauges on the page of a trial: strips below the runs in flight, and a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.plugins.rehearsal.stage import Stage
from tests.programs import until

from .served import Served, open_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.needs("chromium")


def test_gauges_are_drawn_below_the_runs_in_flight(browser: Browser, tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.machine["file_systems"] = {"fs": {"path": "/fs", "targets": ["m0"]}}
    stage.machine["gauges"] = {"files": {"command": "true", "rehearsal": "fs"}}
    stage.test("io")
    stage.behave("io", elapsed="3m")
    throttle = {"gauge": "files", "target": 0.75}
    tests = {"io": {"opens": 0.25}}
    more = {"duration": "30m", "file_system": "fs"}
    stage.component("c", kind="sustained", tests=tests, throttles=[throttle], **more)
    played = stage.play()
    address = f"/trials/{played.folder.name}"
    with Served(stage.trials) as served:
        served.until_read()
        until(lambda: served.json(f"{address}/in-flight")["ready"], "the trial to be judged")
        lines = served.json(f"{address}/in-flight", test="other")["lines"]
        assert [line["name"] for line in lines] == ["", "gauge files"]
        assert (max(lines[1]["y"]), lines[1]["most"]) == (0.75, 0.75)
        with open_page(browser, served.address) as page:
            page.goto(address)
            flight = page.locator('figure[data-plot="in-flight"]')
            flight.and_(page.locator("[data-drawn]")).wait_for()
            names = flight.locator(".strip-name").all_inner_texts()
            assert [" ".join(name.split()) for name in names] == [
                "all tests",
                "gauge files limit 0.75",
                "io target 8",
            ]
            assert "what gauge files read meanwhile" in flight.inner_text()
            row = page.locator("#loads-now tr", has_text="gauge files").inner_text().split()
            assert (row[2], row[-1]) == ("0.75", "0.75")
