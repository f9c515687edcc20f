"""The page of a tuning."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.programs import Workplace

from . import frost
from .served import Served, open_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser

SCRIPT = 'case "$way" in 3) exit 7 ;; esac\necho "time: $((1000 / way + RANDOM % 3))"'


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    place = Workplace(tmp_path_factory.mktemp("tune"))
    place.local(cores=1)
    place.test(
        "app",
        SCRIPT,
        parameters={"way": [1]},
        metrics={"time": {"find": r"time: (\d+)", "better": "lower", "unit": "ms"}},
        run={"launcher": "none"},
    )
    about = {
        "tune": "ways",
        "suite": "suite",
        "test": "app",
        "metric": "time",
        "axes": {"way": [1, 2, 3]},
        "blocks": {"rounds": 2, "allocations": 2},
        "cost": "100%",
    }
    (place.folder / "tune.yaml").write_text(yaml.safe_dump(about))
    done = place.seatrial("tune", "tune.yaml", "-m", str(place.machine), "--name", "t", "-q")
    assert done.code == 0, done.said
    swept = about | {"search": "sweep", "tune": "sweep", "runs": 6}
    del swept["blocks"], swept["cost"]
    (place.folder / "sweep.yaml").write_text(yaml.safe_dump(swept))
    done = place.seatrial("tune", "sweep.yaml", "-m", str(place.machine), "--name", "s", "-q")
    assert done.code == 0, done.said
    done = place.seatrial("run", "suite", "-m", str(place.machine), "--name", "r", "-q")
    assert done.code == 0, done.said
    with Served(place.trials) as running:
        running.until_read()
        yield running


def test_the_page_has_the_race_and_the_advice(served: Served) -> None:
    found = frost.judged(served, "/trials/t/tune")["records"]
    assert {row["values"]["way"]: row["state"] for row in found["settings"]}[3] == "failed"
    assert found["blocks"][0]["settings"] == [0, 1, 2]
    assert len(found["blocks"][0]["nodes"]) == 1
    html = served.get("/trials/t/tune")[1]
    assert re.search(
        '<p class="notice">(use way=2: 0.4[89]|use way=2: 0.50|keep the default)', html
    )
    assert "export OMP_NUM_THREADS=1</pre>" in html
    assert "way=3: failed: exit code 7" in html and "<form" not in html
    rows = csv.DictReader(io.StringIO(served.get("/trials/t/tune.csv")[1]))
    assert [(row["way"], row["state"]) for row in rows][1:] == [("2", "best"), ("3", "failed")]


def test_the_page_of_a_sweep_has_the_plateau_and_the_failed_point(served: Served) -> None:
    found = frost.judged(served, "/trials/s/tune")
    assert found["records"]["swept"]["bests"][0]["metric"] == "time"
    code, html = served.get("/trials/s/tune")
    assert code == 200
    assert "best time: way=2" in html and "knee: the fewest nodes" in html
    assert "way=3: failed: exit code 7" in html and "The race" not in html


def test_the_page_leads_to_its_trial_whatever_that_is(served: Served) -> None:
    assert frost.judged(served, "/trials/r/tune")["reason"] == "r is no tuning"
    for tag in ("r", "t"):
        frost.judged(served, f"/trials/{tag}/tune")
        html = served.get(f"/trials/{tag}/tune")[1]
        assert f'<p class="quiet">trial <a href="/trials/{tag}">{tag}</a></p>' in html


@pytest.mark.needs("chromium")
def test_as_people_see_it(served: Served, browser: Browser) -> None:
    frost.judged(served, "/trials/t/tune")
    with open_page(browser, served.address, viewport={"width": 320, "height": 700}) as page:
        page.goto(f"{served.address}/trials/t/tune")
        assert page.locator("tr:has-text('way=')").count() == 2
        assert page.get_by_text("failed: exit code 7").count() == 1
        assert page.locator("svg").count() >= 1
        assert page.evaluate("document.documentElement.scrollWidth") <= 320
        page.goto(f"{served.address}/trials/t")
        page.get_by_role("link", name="its race and advice").click()
        page.wait_for_url("**/trials/t/tune")
