"""The page Matrix."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from seatrial.model.codes import BUILD_FAILED
from tests.results.figures import Measuring
from tests.results.store.trials import a_case

from . import frost
from .served import Served, open_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("matrix") / "trials"
    folder.mkdir()
    trial = Measuring(
        folder, "ft", [a_case(n, toolchain=name) for n, name in enumerate(("gcc", "intel"))]
    )
    good, bad = trial.cases
    trial.measure(good)
    trial.measure(bad, verdict=BUILD_FAILED)
    trial.done()
    with Served(folder) as running:
        running.until_read()
        yield running


def judged(served: Served, **query: Any) -> Any:
    return frost.judged(served, "/matrix", **{"trial": "ft", **query})


def test_cells_and_counts(served: Served) -> None:
    found = judged(served)
    matrix = found["records"]
    assert matrix["columns"] == ["gcc", "intel"]
    assert [cell["state"] for cell in matrix["rows"][0]["cells"]] == ["passed", "build failed"]
    assert matrix["total"] == {"passed": 1, "build failed": 1}
    assert matrix["counts"] == [{"passed": 1}, {"build failed": 1}]
    html = served.get("/matrix?trial=ft")[1]
    assert "a figure is the median of the runs with a right answer" in html


def test_what_is_refused_is_said_in_the_words_of_the_form(served: Served) -> None:
    found = judged(served, by="nothing")
    assert found["state"] == "refused"
    assert "Columns" in found["reason"]
    assert "--by" not in found["reason"]


@pytest.mark.needs("chromium")
def test_as_people_see_it(served: Served, browser: Browser) -> None:
    judged(served)
    with open_page(browser, served.address, viewport={"width": 320, "height": 700}) as page:
        page.goto("/matrix")
        page.fill("input[name=trial]", "ft")
        page.keyboard.press("Enter")
        page.wait_for_selector("table")
        assert page.locator("td .judged.worse").inner_text() == "no build"
        assert page.locator("input[name=by]").get_attribute("placeholder") == "toolchain"
        assert page.evaluate("document.documentElement.scrollWidth") <= 320
        shaded = "each => getComputedStyle(each).backgroundImage.includes('gradient')"
        assert all(page.locator(part).evaluate(shaded) for part in (".wide", ".top nav"))
