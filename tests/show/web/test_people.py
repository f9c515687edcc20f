"""What people recorded, on the pages of trials: items, runs, issues, what happened."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

import pytest

from seatrial.journal.events import RunJudged
from tests.cli.test_ticking import FT, tick, write
from tests.programs import Workplace, until


@pytest.fixture
def address(place: Workplace) -> Any:
    """A plan with results, and the address of its server."""
    write(place, evidence=[{"document": "log.pdf", "pending": True}])
    assert place.seatrial("accept", "plan.yaml", "-q").code == 3
    assert tick(place, "1", "--pass").code == 0
    assert tick(place, "ups", "--fail", "--comment", "<b>it did not</b>").code == 0
    (run, *_) = (event.run_id for event in place.events("p-runs", RunJudged))
    assert place.seatrial("judge", run, "--cause", "F2", "--by", "Ann").code == 0
    opened = ("issue", "open", "plan.yaml", "a slow run", "--run", run, "--by", "Ann")
    assert place.seatrial(*opened).code == 0
    happened = ("accept", "record", "plan.yaml", "incident", "F2 was down", "--by", "Ann")
    assert place.seatrial(*happened).code == 0
    with place.start("serve", "--port", "0") as serving:
        serving.until(lambda: "http://" in serving.said, "its address")
        yield serving.said.split("http://")[1].split("/")[0]


def page(address: str, path: str) -> str:
    with urllib.request.urlopen(f"http://{address}{path}", timeout=30) as answer:
        return str(answer.read().decode())


def test_the_page_of_a_trial_shows_what_people_recorded(place: Workplace, address: str) -> None:
    def read(tag: str) -> Any:
        return json.loads(page(address, f"/trials/{tag}.json"))

    until(lambda: bool(read(FT)["status"] and read("p-runs")["status"]), "they are judged")
    found = read(FT)
    assert found["status"]["state"] == "awaited"
    assert found["people"]["notices"] == [
        "Awaited: 1 item (cooling), log.pdf.",
        "1 item failed: ups.",
    ]
    assert [item["state"] for item in found["status"]["items"]] == ["pass", "awaited", "fail"]
    text = page(address, f"/trials/{FT}")
    assert "Awaited: 1 item (cooling), log.pdf." in text
    assert "&lt;b&gt;it did not" in text
    assert "a slow run" in text
    assert "F2 was down" in text
    assert 'id="utilisation"' not in text, "nothing of a checklist runs"
    runs = page(address, "/trials/p-runs")
    assert 'id="utilisation"' in runs
    assert "Said of runs" in runs
    assert read("p-runs")["status"]["reviews"][0]["cause"] == "F2"
    assert page(address, "/trials/p-records")
    assert "p-records" in page(address, "/trials")


def test_a_document_that_changed_is_told(place: Workplace, address: str) -> None:
    """As the report tells it: on the trial's page, on Now, and by the verdict."""
    log = place.folder / "log.pdf"
    log.write_text("all is well")
    given = ("accept", "evidence", "plan.yaml", "log.pdf", str(log), "--by", "Ann")
    assert place.seatrial(*given).code == 0
    reading = place.folder / "cooling.txt"
    reading.write_text("21 C")
    assert tick(place, "cooling", "--value", "21", "--document", str(reading)).code == 0
    assert tick(place, "ups", "--pass", "--again", "the fuse was replaced").code == 0

    def verdicts() -> tuple[str, str]:
        status = json.loads(page(address, f"/trials/{FT}.json"))["status"]
        late = json.loads(page(address, "/now.json"))["lately"]
        (now,) = [each for each in late if each["trial"]["tag"] == FT]
        return status and status["verdict"], now["verdict"]

    until(lambda: verdicts() == ("met", "met"), "all is there")
    log.write_text("all is better")
    until(lambda: verdicts() == ("undecided", "undecided"), "it is told")
    reading.unlink()
    changed = "log.pdf changed since it was signed for"
    notice = f"Documents: {changed}; cooling.txt is not here."
    until(lambda: notice in page(address, f"/trials/{FT}"), "the other one")
    assert changed in page(address, "/now.json")
    log.write_text("all is well")
    reading.write_text("21 C")
    until(lambda: verdicts() == ("met", "met"), "they are back")
