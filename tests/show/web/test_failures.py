"""The failures: what is told of each, the columns that are chosen, live in a browser."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from seatrial.model import codes
from seatrial.show.web.pages import runs
from tests.programs import Workplace, until

from .lists import EVIL, make_site, weekly
from .served import Served, open_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    trials = tmp_path_factory.mktemp("failures") / "trials"
    make_site(trials)
    with Served(trials) as opened:
        until(lambda: opened.json("/failures")["found"] == 4, "the journals to be read")
        yield opened


def by_id(found: Any) -> dict[str, Any]:
    return {one["run_id"]: one for one in found["failures"]}


def test_each_failure_is_told_in_full(served: Served) -> None:
    found = served.json("/failures")
    known = by_id(found)
    assert list(known) == ["broken1", "slow1", "bbbb3333nightly", "aaaa2222nightly"]
    broken = known["broken1"]
    assert broken["trial"] == "weekly"
    assert (broken["machine"], broken["app"]) == ("frontier", "io/write-app")
    assert (broken["code"], broken["verdict"]) == (codes.FAILED.number, "failed")
    assert broken["meaning"] == codes.FAILED.meaning
    assert broken["event"] == {"event": "binary_execute_end", "value": 3, "text": ""}
    assert (broken["output_of"], broken["output"]) == ("stderr", "disk on fire")
    assert broken["directory"].endswith("/weekly/runs/io/write/broken1")
    wrong = known["aaaa2222nightly"]
    assert wrong["event"]["event"] == "binary_execute_end"
    assert known["bbbb3333nightly"]["event"]["event"] == "check_end"
    assert known["bbbb3333nightly"]["reason"] == "no compiler"
    assert known["slow1"]["output"].startswith("stderr is gone with its directory")


def test_causes_are_shown_filtered_by_and_lead_to_all_of_a_cause(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    place.local()
    place.test("quota", "echo '<b>: Disk quota exceeded'; exit 1", repeat=2)
    place.test("silent", "exit 1")
    modes = {"no licence": {"code": 102, "exit_code": 37, "advice": "ask for one"}}
    place.test("licence", "exit 37", failures=modes)
    assert place.run("--name", "t").code == 1
    with Served(place.trials) as opened:
        until(lambda: opened.json("/failures")["found"] == 4, "the journal to be read")
        known = {one["test"]: one for one in opened.json("/failures")["failures"]}
        assert (known["quota"]["cause"], known["quota"]["cause_code"]) == ("over quota", 0)
        assert known["quota"]["cause_line"] == "stdout: <b>: Disk quota exceeded"
        assert (known["licence"]["cause"], known["licence"]["cause_code"]) == ("no licence", 102)
        causes = [{"cause": "over quota", "runs": 2}, {"cause": "no licence", "runs": 1}]
        assert opened.json("/failures", limit=1)["causes"] == causes, "of all pages"
        (one, _) = opened.json("/failures", cause="QUOTA")["failures"]
        assert one["test"] == "quota"
        assert opened.json("/runs", cause="no lic*")["found"] == 1
        _, page = opened.get("/failures")
        assert "cause=over+quota" in page
        assert "ask for one" in page
        _, page = opened.get(f"/runs/t/{one['run_id']}")
        assert "&lt;b&gt;: Disk quota exceeded" in page


def test_what_runs_again_has_not_failed(served: Served) -> None:
    assert "lost1" not in by_id(served.json("/failures"))


def test_the_window_is_of_the_time_of_failure(served: Served) -> None:
    times = [one["time"] for one in served.json("/failures")["failures"]]
    assert times == sorted(times, reverse=True)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"match": "^io"}, {"broken1"}),
        ({"verdict": "build failed"}, {"bbbb3333nightly"}),
        ({"tag": "memory"}, {"broken1", "slow1"}),
        ({"trial": "dream"}, {"dream2"}),
        ({"rehearsed": 1, "verdict": "failed"}, {"broken1", "dream2"}),
        ({"machine": "none"}, set()),
    ],
)
def test_filters(served: Served, query: dict[str, Any], expected: set[str]) -> None:
    found = served.json("/failures", **query)
    assert set(by_id(found)) == expected
    assert found["found"] == len(expected)


def test_pages_follow_each_other(served: Served) -> None:
    first = served.json("/failures", limit=3)
    assert len(first["failures"]) == 3
    place = first["older"].partition("before=")[2].replace("%7E", "~")
    second = served.json("/failures", limit=3, before=place)
    assert list(by_id(second)) == ["aaaa2222nightly"]
    assert not second["older"]


def test_columns_are_those_that_the_address_names(served: Served) -> None:
    _, text = served.get("/failures?column=time&column=meaning")
    head = text[text.index("<thead>") : text.index("</thead>")]
    assert head.count("<th") - head.count("<thead") == 2
    assert "Meaning" in head
    assert codes.FAILED.meaning in text
    assert "disk on fire" not in text
    found = served.json("/failures", column=["directory", "run"])
    assert found["shown"] == ["run", "directory"]
    assert all(one["output"] == "" for one in found["failures"])


def test_what_a_job_wrote_stays_text(served: Served) -> None:
    _, text = served.get("/failures?match=io")
    assert EVIL not in text
    assert "&lt;script&gt;" in text


def test_a_file_system_that_hangs_holds_no_page_up(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading is given up after its time, and the rest of the page is there."""
    import threading

    from seatrial.results.store.ingest import synced
    from seatrial.show.web.page import PageQuery
    from seatrial.show.web.server_state import ServerState

    weekly(tmp_path / "trials")
    synced(tmp_path / "s.sqlite", tmp_path / "trials").close()
    done = threading.Event()
    opened = os.open

    def hangs(path: Any, *more: Any, **named: Any) -> int:
        if threading.current_thread().name == "files":
            done.wait(30)
        return opened(path, *more, **named)

    monkeypatch.setattr(os, "open", hangs)
    monkeypatch.setattr(runs, "READING_S", 0.1)
    site = ServerState(tmp_path / "trials", tmp_path / "s.sqlite")
    try:
        found = runs.failures(site, PageQuery({}, [], "/failures"))
        told = {one.run_id: one.output for one in found.failures}
        assert told == dict.fromkeys(("broken1", "slow1"), "its file system was too slow to answer")
    finally:
        done.set()
        site.forget()


@pytest.mark.needs("chromium")
def test_columns_are_chosen_by_boxes_and_kept_in_the_address(
    served: Served, browser: Browser
) -> None:
    with open_page(browser, served.address) as page:
        page.goto("/failures")
        heads = page.locator("#list thead th")
        assert "Directory" not in heads.all_inner_texts()
        page.get_by_text("Columns: 11 of 17").click()
        page.get_by_label("Directory").check()
        page.locator("#list thead th", has_text="Directory").wait_for()
        page.get_by_label("Machine", exact=True).last.uncheck()
        page.locator("#list thead th", has_text="Machine").wait_for(state="detached")
        address = page.url
        assert "column=directory" in address and "match=" not in address
    with open_page(browser, served.address) as page:  # as a colleague opens it
        page.goto(address)
        texts = page.locator("#list thead th").all_inner_texts()
        assert "Directory" in texts and "Machine" not in texts
        page.locator("td.path", has_text="/weekly/runs/io/write/broken1").wait_for()
        pre = page.locator("#list td pre").first
        assert pre.evaluate("each => getComputedStyle(each).whiteSpace") == "pre"


@pytest.mark.needs("chromium")
def test_a_failure_appears_by_itself(tmp_path: Path, browser: Browser) -> None:
    maker = weekly(tmp_path / "trials")
    with Served(tmp_path / "trials") as opened, open_page(browser, opened.address) as page:
        page.goto("/failures?match=hpl")
        page.locator("#live[data-state=on]").wait_for()
        page.get_by_text("No failure matches").wait_for()
        maker.run(maker.cases[2], "burnt1", codes.TIMEOUT, why="it reached its walltime")
        maker.write()
        page.locator("#list tbody tr", has_text="timeout").wait_for()
