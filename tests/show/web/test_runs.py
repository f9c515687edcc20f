"""The list of runs: its filters, its counts, its pages, and how it looks and lives in a browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.programs import until

from .lists import STREAMS, make_site, weekly
from .served import Served, open_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ALL = 3 + STREAMS + 5  # nightly's and weekly's; no rehearsed one


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    trials = tmp_path_factory.mktemp("runs") / "trials"
    make_site(trials)
    with Served(trials) as opened:
        until(lambda: opened.json("/runs")["total"] == ALL, "the journals to be read")
        yield opened


def ids(found: Any) -> list[str]:
    return [run["run_id"] for run in found["runs"]]


def counted(found: Any) -> dict[str, int]:
    return {tally["state"]: tally["runs"] for tally in found["counts"]}


def test_all_runs_are_listed_newest_first_and_counted_by_state(served: Served) -> None:
    found = served.json("/runs")
    assert len(found["runs"]) == found["found"] == found["total"] == ALL
    created = [run["created"] for run in found["runs"]]
    assert created == sorted(created, reverse=True)
    expected = {
        "passed": STREAMS + 1,
        "running": 1,
        "waiting": 1,
        "failed": 4,
        "again": 1,
        "known": 0,
    }
    assert counted(found) == expected
    assert found["building"] == 0


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"trial": "nightly"}, {"aaaa1111nightly", "aaaa2222nightly", "bbbb3333nightly"}),
        ({"state": "running"}, {"going1"}),
        ({"state": "waiting"}, {"queue1"}),
        ({"state": "again"}, {"lost1"}),
        ({"match": "^io/|hpl"}, {"broken1", "lost1", "going1", "queue1", "bbbb3333nightly"}),
        ({"match": "HPL-APP"}, {"going1", "queue1", "bbbb3333nightly"}),
        ({"match": "io", "state": "failed"}, {"broken1"}),
        ({"verdict": "performance"}, {"slow1"}),
        ({"tag": "memory", "state": "failed"}, {"slow1", "broken1"}),
        ({"machine": "elsewhere"}, set()),
        ({"rehearsed": 1, "match": "dreamt"}, {"dream1", "dream2"}),
        ({"trial": "dream"}, {"dream1", "dream2"}),
        ({"match": "dreamt"}, set()),
    ],
)
def test_filters_choose_runs_and_counts_agree(
    served: Served, query: dict[str, Any], expected: set[str]
) -> None:
    found = served.json("/runs", **query)
    assert set(ids(found)) == expected
    assert found["found"] == len(expected)
    chosen = [tally for tally in found["counts"] if query.get("state") in (None, tally["state"])]
    assert sum(tally["runs"] for tally in chosen) == len(expected)


def test_a_window_begins_with_since_and_ends_before_until(served: Served) -> None:
    found = served.json("/runs", trial="weekly", sort="oldest")
    third, fifth = found["runs"][2]["created"], found["runs"][4]["created"]
    within = served.json("/runs", trial="weekly", since=third, until=fifth)
    assert ids(within) == ids(found)[3:1:-1]
    assert counted(within)["passed"] == within["total"] == 2


def test_each_count_is_a_link_to_its_runs(served: Served) -> None:
    for tally in served.json("/runs", tag="node")["counts"]:
        path, _, query = tally["link"].partition("?")
        status, _ = served.get(tally["link"])
        assert status == 200
        answer = served.json(path, **dict(pair.split("=") for pair in query.split("&")))
        assert answer["found"] == len(answer["runs"]) == tally["runs"]


@pytest.mark.parametrize("order", ["newest", "oldest", "longest", "shortest"])
def test_pages_follow_each_other_without_gap_or_repeat(served: Served, order: str) -> None:
    whole = ids(served.json("/runs", sort=order))
    seen: list[str] = []
    address = f"/runs?limit=4&sort={order}"
    while address:
        query = dict(pair.split("=") for pair in address.partition("?")[2].split("&"))
        query = {name: value.replace("%7E", "~") for name, value in query.items()}
        found = served.json("/runs", **query)
        seen += ids(found)
        address = found["older"]
        assert found["found"] == ALL
        assert bool(found["newest"]) == ("before" in query)
    assert seen == whole


def test_the_longest_come_first(served: Served) -> None:
    elapsed = [run["elapsed"] for run in served.json("/runs", sort="longest")["runs"]]
    known = [value for value in elapsed if value is not None]
    assert known == sorted(known, reverse=True)
    assert elapsed[len(known) :] == [None] * (ALL - len(known))


def test_a_page_stays_while_runs_come(tmp_path: Path) -> None:
    maker = weekly(tmp_path / "trials")
    with Served(tmp_path / "trials") as opened:
        opened.until_read()
        first = opened.json("/runs", limit=5)
        query = first["older"].partition("before=")[2].replace("%7E", "~")
        second = ids(opened.json("/runs", limit=5, before=query))
        maker.run(maker.cases[0], "newer1")
        maker.write()
        until(lambda: ids(opened.json("/runs", limit=1)) == ["newer1"], "the new run")
        assert ids(opened.json("/runs", limit=5, before=query)) == second


@pytest.mark.parametrize(
    ("query", "status", "said"),
    [
        ("match=(", 400, "no regular expression"),
        ("match=(?=x)", 400, "no regular expression"),
        ("state=odd", 400, "one of passed, running"),
        ("sort=upwards", 400, "one of newest"),
        ("before=yesterday", 400, "take it from a link"),
        ("before=nan~1", 400, "take it from a link"),
        ("before=1~99999999999999999999999", 400, "take it from a link"),
        ("limit=0", 400, "from 1 to 2000"),
        ("since=soon", 400, "is no time"),
        ("since=1h&until=2h", 400, "swap them"),
        ("verdict=none", 400, "one of pending"),
        ("trial=unheard", 404, "no trial &#39;unheard&#39;"),
    ],
)
def test_what_cannot_be_read_says_so(served: Served, query: str, status: int, said: str) -> None:
    got, text = served.get(f"/runs?{query}")
    assert (got, said in text) == (status, True), text
    assert "Traceback" not in text


def test_a_site_without_trials_says_how_to_begin(tmp_path: Path) -> None:
    with Served(tmp_path / "trials", store=str(tmp_path / "store.sqlite")) as opened:
        for page, said in (("/runs", "No runs yet"), ("/failures", "Nothing has failed")):
            status, text = opened.get(page)
            assert status == 200
            assert said in text


def test_rehearsed_runs_bear_their_mark(served: Served) -> None:
    _, text = served.get("/runs?trial=dream")
    assert 'class="notice rehearsal"' in text
    assert text.count('<span class="rehearsed"') == 2
    assert "rehearsal" not in served.get("/runs?trial=weekly")[1]


@pytest.mark.needs("chromium")
def test_people_filter_count_and_sort_in_a_browser(served: Served, browser: Browser) -> None:
    with open_page(browser, served.address) as page:
        page.goto("/runs")
        page.get_by_label("App or test").fill("stream$")
        page.wait_for_url("**/runs?match=stream%24")
        rows = page.locator("#list tbody tr")
        rows.nth(STREAMS + 2).wait_for()
        assert rows.count() == STREAMS + 3
        # By key: live news may replace a link between the press and the release of a button.
        page.locator("#count-failed").press("Enter")
        page.wait_for_url("**state=failed**")
        assert rows.count() == 2
        assert page.locator("select[name=state]").input_value() == "failed"
        page.get_by_role("link", name="Elapsed").click()
        page.wait_for_url("**sort=longest**")
        assert page.locator("th[aria-sort=descending]").inner_text() == "Elapsed"
        page.locator("#list tbody tr a.id").first.click()
        page.wait_for_url("**/runs/*/*")
        assert page.locator("h1").inner_text().startswith("stream")


@pytest.mark.needs("chromium")
def test_a_run_appears_by_itself_where_the_filters_let_it(tmp_path: Path, browser: Browser) -> None:
    maker = weekly(tmp_path / "trials")
    with Served(tmp_path / "trials") as opened, open_page(browser, opened.address) as page:
        page.goto("/runs?match=stream&state=running")
        page.locator("#live[data-state=on]").wait_for()
        assert page.locator("#list tbody tr").count() == 0
        maker.run(maker.cases[0], "appears1", None)
        maker.write()
        page.locator("text=appears1").first.wait_for()
        assert page.locator("#count-running b").inner_text() == "1"
        assert page.url.endswith("/runs?match=stream&state=running")


def test_times_of_the_fixture_are_as_they_are_told(served: Served) -> None:
    first = served.json("/runs", trial="weekly", sort="oldest")["runs"][0]
    assert first["run_id"] == "stream00"
    assert first["created"].startswith("2026-11-21T13:00:02")
