"""History as people use it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest

from seatrial.results import notes
from tests.cli.test_judging import digest_of, facts_of
from tests.results.figures import TRIAD, Measuring, bound, steady
from tests.results.store.trials import NOON, SECOND
from tests.results.test_history import Story

from . import frost
from .served import Served, open_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser

DAYS = 24
MARK = 'class="rehearsed"'
REFERENCES = """references:
  - {test: triads, metric: triad, where: {threads: 1}, unit: MB/s, value: 310000, lower: -0.03}
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("history") / "trials"
    folder.mkdir()
    frost.tell_history(folder, days=DAYS, step=14)
    last = Measuring(
        folder,
        "latest",
        [bound(401, "triads", threads=1)],
        created=NOON - 4 * frost.DAY,
        machine="frost",
        expected=REFERENCES,
    )
    last.series(last.cases[0], TRIAD, steady(288_300, 2, 0.004))
    last.done()
    made_up = Measuring(folder, "made-up", [bound(401, "triads", threads=1)], rehearsed=True)
    made_up.series(made_up.cases[0], TRIAD, [1.0, 2.0])
    made_up.done()
    part = Measuring(
        folder, "made-too", [bound(402, "triads", threads=2)], machine="frost", rehearsed=True
    )
    part.series(part.cases[0], TRIAD, [600_000.0, 600_100.0])
    part.done()
    at = NOON - (DAYS + 4 - 14) * frost.DAY - 3600 * SECOND
    notes.write(folder / notes.FILE, "fabric <i>reset", at=at, machine="frost")
    notes.write(folder / notes.FILE, "kernel 6.1", at=at - 5 * frost.DAY)
    with Served(folder) as running:
        running.until_read()
        yield running


def judged(served: Served, **query: Any) -> Any:
    """The answer once it is judged."""
    return frost.judged(served, "/history", **{"metric": "triad", **query})


@pytest.mark.needs("chromium")
def test_a_metric_is_chosen_then_a_series(served: Served, browser: Browser) -> None:
    with open_page(browser, served.address) as page:
        page.goto("/history")
        page.locator(".choices").get_by_role("link", name="triad", exact=True).click()
        page.wait_for_selector("h2 a")
        assert "triads<wbr>{threads=" in page.locator("h2 a").first.inner_html()
        assert page.locator("h2 a").count() == 2
        page.locator("h2 a:has-text('threads=1')").click()
        page.wait_for_url("**machine=frost**")
        page.wait_for_selector("h2:has-text('triads{threads=1}@gcc')")
        assert "fabric <i>reset" in (page.text_content("figure svg") or "")
        assert "confirmed" in page.inner_text("table >> nth=0")
        assert "worse" in page.inner_text("table >> nth=0")
        assert "(in between)" in page.inner_text("table >> nth=0")
        assert "reference" in (page.text_content("figure svg") or "")
        page.get_by_role("link", name="latest").first.click()
        page.wait_for_url("**/trials/latest")


@pytest.mark.needs("chromium")
def test_the_success_rate_of_each_test(served: Served) -> None:
    found = judged(served, metric="success_rate", test="triads")
    assert (found["state"], found["found"]) == ("judged", 1)
    (line,) = found["records"]
    assert (line["test"], line["machine"]) == ("triads", "frost")
    latest = line["points"][-1]
    assert (latest["trial"], latest["passed"], latest["counted"]) == ("latest", 2, 2)
    assert latest["value"] == latest["high"] == 1.0 and 0.3 < latest["low"] < 0.4
    _, page = served.get("/history?metric=success_rate&test=triads")
    assert "Success rate of triads on frost" in page
    suggested = '<datalist id="metric-values"><option value="elapsed"><option value="success_rate">'
    assert suggested in page
    nothing = judged(served, metric="success_rate", test="nothing")
    assert nothing["state"] == "refused" and "no run that counts" in nothing["reason"]


def test_a_filter_changes_the_list_and_the_address(served: Served, browser: Browser) -> None:
    judged(served)
    with open_page(browser, served.address, viewport={"width": 320, "height": 700}) as page:
        page.goto("/history?metric=triad")
        page.wait_for_selector("h2 a")
        assert page.evaluate("document.documentElement.scrollWidth") <= 320
        page.fill("input[name=case]", "threads=2")
        page.keyboard.press("Enter")
        page.wait_for_url("**case=threads%3D2**")
        page.wait_for_selector("text=no change")


def test_changes_levels_notes_and_the_reference(served: Served) -> None:
    found = judged(served, case="threads=1")
    (line,) = found["records"]
    (change,) = [one for one in line["changes"] if one["tier"] == "confirmed"]
    assert change["worse"] and change["percent"] == pytest.approx(-7, abs=0.5)
    assert change["nearest_note"]["text"] == "fabric <i>reset"
    assert [round(change[key], -4) for key in ("before", "after")] == [310_000, 290_000]
    assert [note["text"] for note in line["notes"]] == ["kernel 6.1", "fabric <i>reset"]
    assert line["n"] == 2 * DAYS + 2 and line["points"][-1]["trial"] == "latest"
    _, page = served.get("/history?metric=triad&case=threads%3D1")
    assert "(in between)" in page and "1 for the worse" in page
    for drawn in (">reference</text>", ">least</text>", ">level</text>"):
        assert drawn in page
    assert ">most</text>" not in page
    rows = served.get("/history.csv?metric=triad&case=threads%3D1")[1].splitlines()
    assert len(rows) == 1 + line["n"] and rows[0].startswith("machine,case,case_name,metric,")


def test_a_slow_drift_is_marked_where_it_began(tmp_path: Path) -> None:
    story = Story(tmp_path)
    for day in range(0, 60, 10):
        story.trial([1000 * (1 - 0.1 * (day + i) / 59) + (i * 7) % 5 - 2 for i in range(10)])
    with Served(tmp_path) as running:
        running.until_read()
        (line,) = judged(running, metric="triad")["records"]
        _, page = running.get("/history?metric=triad")
    assert '<span class="judged worse">confirmed drift</span>' in page
    (change,) = line["changes"]
    assert (change["kind"], change["worse"], change["tier"]) == ("drift", True, "confirmed")
    assert change["since"] < change["settled"]
    assert [round(change[key], -1) for key in ("before", "after")] == [990, 910]


def test_many_series_have_a_table_and_small_charts(tmp_path: Path) -> None:
    trial = Measuring(tmp_path, "many", [bound(n, threads=n) for n in range(1, 7)])
    for case in trial.cases:
        slow = steady(900, 15, 0.001) if case is trial.cases[3] else steady(1000, 15, 0.001)
        trial.series(case, TRIAD, [*steady(1000, 15, 0.001), *slow])
    trial.done()
    with Served(tmp_path) as running:
        running.until_read()
        found = judged(running)
        _, page = running.get("/history?metric=triad")
        alone = judged(running, first=4)
    assert (found["found"], len(found["records"]), len(alone["records"])) == (6, 6, 2)
    assert found["records"][0]["case"] == trial.cases[3].id, "the one that changed comes first"
    assert page.count('<figure class="multiple') == 6
    assert page.count('<figure class="multiple changed"') == 1
    assert "6 series: 1 confirmed change, 1 for the worse" in page
    assert page.count("<h2>") == 1, "of many series those that changed are shown in full"


def test_the_facts_that_changed_with_a_level(tmp_path: Path) -> None:
    for day, kernel in ((2, "5.1"), (15.6, "<b>5.2")):
        facts_of(tmp_path, day, kernel)
    story = Story(tmp_path)
    story.level(5000, 15, node_facts=digest_of("5.1"))
    story.level(4700, 15, node_facts=digest_of("<b>5.2"))
    with Served(tmp_path) as running:
        running.until_read()
        (line,) = judged(running, metric="triad")["records"]
        (change,) = line["changes"]
        told = {"subject": "nodes n001", "what": "node.kernel", "first": "5.1", "second": "<b>5.2"}
        assert change["facts"] == [told]
        _, page = running.get("/history?metric=triad")
        assert "nodes n001: node.kernel: 5.1 -&gt; &lt;b&gt;5.2" in page


def test_rehearsed_figures_are_asked_for(served: Served) -> None:
    assert judged(served)["found"] == 2 and not judged(served)["rehearsed"]
    both = judged(served, rehearsed=1)
    assert both["found"] == 3 and both["rehearsed"]
    named = judged(served, trial="made-up")
    assert [one["value"] for line in named["records"] for one in line["points"]] == [1.0, 2.0]
    assert 'class="notice rehearsal"' in served.get("/history?metric=triad&trial=made-up")[1]
    refused = judged(served, trial="made-up", case="nope")
    assert refused["state"] == "refused" and refused["rehearsed"]


def test_what_was_rehearsed_bears_its_own_mark(served: Served) -> None:
    def marks(**query: Any) -> int:
        judged(served, **query)
        return served.get("/history?metric=triad&" + urlencode(query))[1].count(MARK)

    assert marks() == 0
    assert marks(rehearsed=1) == 2  # of three series: one as a whole, a part of another
    assert marks(trial="made-up") == 1 + 2  # the series, and each row
    mixed = judged(served, rehearsed=1, case="threads=2")
    (line,) = mixed["records"]
    assert sum(point["trial"] == "made-too" for point in line["points"]) == 2
    _, html = served.get("/history?metric=triad&rehearsed=1&case=threads%3D2")
    assert f"2 of {line['n']}</span>" in html
    assert ">rehearsed</text>" in html  # the legend of the figure


def test_the_window_is_chosen(served: Served) -> None:
    middle = "2026-11-05"
    before, after = (judged(served, **{name: middle}) for name in ("until", "since"))
    whole = judged(served)
    assert sum(found["records"][i]["n"] for found in (before, after) for i in (0, 1)) == sum(
        line["n"] for line in whole["records"]
    )


def test_pages_of_series(served: Served) -> None:
    assert len(judged(served, first=1)["records"]) == 1
    beyond = judged(served, first=7)
    assert (len(beyond["records"]), beyond["first"]) == (2, 0)


def test_what_cannot_be_shown_is_said_beside_the_form(served: Served) -> None:
    for query, said in (
        ({"metric": "traid"}, "did you mean"),
        ({"case": "nope"}, "no run with a right answer"),
        ({"trial": "nope"}, "no trial"),
    ):
        found = judged(served, **query)
        assert found["state"] == "refused" and said in found["reason"]
    judged(served, case="threads=1")
    _, html = served.get("/history?metric=triad&case=threads%3D1")
    assert "fabric &lt;i&gt;reset" in html and "<i>reset" not in html
    assert served.json("/history")["state"] == "asked"
