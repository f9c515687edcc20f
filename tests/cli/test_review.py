"""`seatrial judge RUN`: causes, comments, exclusions by agreement, while a trial runs and after."""

from __future__ import annotations

import getpass
import json
import re

import pytest

from seatrial.journal.events import RunJudged, RunReviewed
from tests.execute.plans import TAG, accept, control, ends, short, start, write_plan
from tests.programs import Workplace
from tests.show.web.served import Served

CRITERIA = [{"criterion": "pass_rate", "at_least": "100%"}]
AGREED = ("--exclude", "--by", "Ann", "--by", "Bob")


@pytest.fixture
def place(place: Workplace) -> Workplace:
    place.constants = {"execute.requests.LOOK_SECONDS": 0.05}
    return place


def one_failed(place: Workplace) -> str:
    """A complete trial of which one run failed; return its id."""
    flag = place.folder / "failed"
    short(place, "a", f"sleep 0.3\nif mkdir {flag} 2>&-; then exit 3; fi")
    write_plan(place, criteria=CRITERIA, retry={"answers": {"failed": "never"}})
    done = accept(place)
    assert done.code == 1, done.said
    (bad,) = (event for event in ends(place) if event.verdict != "pass")
    return bad.run_id


def test_a_run_is_excluded_by_two_and_criteria_are_shown_with_and_without(place: Workplace) -> None:
    run = one_failed(place)
    before = place.events(TAG, RunJudged)
    done = place.seatrial("judge", run, "--cause", "F2", "--comment", "a slow server", *AGREED)
    assert done.code == 0, done.said
    assert "excluded by Ann and Bob: F2: a slow server" in done.out
    assert place.events(TAG, RunJudged) == before
    (event,) = place.events(TAG, RunReviewed)
    assert (event.run_id, event.cause, event.names) == (run, "F2", ["Ann", "Bob"])
    assert event.by.startswith(f"{getpass.getuser()}@")
    shown = control(place, "status", "--format", "json")
    assert shown.code == 0, shown.said
    (one,) = json.loads(shown.out)["trials"]
    (result, *_), *_ = one["criteria"]
    assert (one["verdict"], result["state"], result["value"]) == ("met", "met", 1.0)
    assert result["with_excluded"]["state"] == "not met"
    assert result["with_excluded"]["n"] == result["n"] + 1
    (review,) = one["reviews"]
    assert (review["run"], review["verdict"], review["is_excluded"]) == (run, "failed", True)
    runs = json.loads(place.seatrial("runs", "--format", "json").out)
    assert [each["run_id"] for each in runs if each["excluded"]] == [run]
    (line,) = (each for each in place.seatrial("runs").out.splitlines() if "excluded" in each)
    assert "failed, excluded" in line
    with Served(place.trials) as served:
        page = served.json("/runs")["runs"]
        assert [each["run_id"] for each in page if each["excluded"]] == [run]
        assert ">excluded</small>" in served.get("/runs")[1]
        page = served.json("/failures")["failures"]
        assert [(each["run_id"], each["excluded"]) for each in page] == [(run, True)]
        assert ">excluded</small>" in served.get("/failures")[1]
        html = served.get(f"/runs/{TAG}/{run}")[1]
        assert "Criteria leave it out by agreement: Ann, Bob: F2, excluded" in html
        assert "1 excluded</small>" in served.get(f"/trials/{TAG}")[1]
    words = control(place, "status").out
    assert "with excluded runs" in words
    assert "not met" in words
    assert "Ann, Bob" in words
    head = place.seatrial("show", run).out.partition("\n\n")[0]
    assert re.search("^by people +Ann, Bob: F2, excluded", head, re.MULTILINE)
    report = place.folder / "report.md"
    made = place.seatrial("report", "plan.yaml", "-o", str(report))
    assert made.code == 0, made.said
    text = report.read_text()
    assert "Runs excluded by agreement" in text
    assert "Causes that people gave" in text
    assert "with excluded runs" in text
    assert place.seatrial("judge", run, "--comment", "looked at again").code == 0
    verified = place.seatrial("report", "verify", str(report))
    assert verified.code == 3, "what people say after the end is no forgery: " + verified.said
    assert "went on since" in verified.out


def test_an_exclusion_is_withdrawn_and_the_criteria_are_as_before(place: Workplace) -> None:
    run = one_failed(place)
    assert place.seatrial("judge", run, "--comment", "by mistake", *AGREED).code == 0
    assert control(place, "status").code == 0
    refused = place.seatrial("judge", run, "--withdraw")
    assert refused.code == 2
    assert "--comment" in refused.err
    done = place.seatrial("judge", run, "--withdraw", "--comment", "it was the node", "--by", "Ann")
    assert done.code == 0, done.said
    assert control(place, "status").code == 1
    assert not any(
        each["excluded"] for each in json.loads(place.seatrial("runs", "--format", "json").out)
    )
    assert "by people" not in place.seatrial("show", run).out
    again = place.seatrial("judge", run, "--withdraw", "--comment", "once more")
    assert again.code == 2
    assert "nothing was said of it" in again.err


def test_a_run_is_judged_while_its_trial_runs(place: Workplace) -> None:
    short(place, "a")
    write_plan(place, duration="60s")
    with start(place) as driving:
        driving.until(lambda: len(ends(place)) > 1, "two verdicts")
        run = ends(place)[0].run_id
        done = place.seatrial("judge", run, "--cause", "F2")
        assert done.code == 0, done.said
        assert driving.alive
        (event,) = place.events(TAG, RunReviewed)
        assert (event.run_id, event.cause) == (run, "F2")
        assert not list((place.trial(TAG).path / "requests").iterdir())
        assert control(place, "pause").code == 0
        driving.end()
    resumed = place.seatrial("judge", run, "--comment", "and paused")
    assert resumed.code == 0, resumed.said
    shown = json.loads(control(place, "status", "--format", "json").out)["trials"]
    (review,) = shown[0]["reviews"]
    assert (review["cause"], review["comment"]) == ("F2", "and paused")


def test_what_cannot_be_said_of_a_run_is_refused(place: Workplace) -> None:
    short(place, "a", "sleep 0.3")
    write_plan(place)
    assert accept(place).code == 0
    run = ends(place)[0].run_id
    for words, said in (
        (("nosuchrun", "--cause", "F2"), "no run begins with 'nosuchrun'"),
        ((run, "--exclude", "--cause", "F2", "--by", "Ann"), "name them"),
        ((run, "--exclude", "--cause", "F2", "--by", "Ann", "--by", "ann "), "name them"),
        ((run, *AGREED), "say why"),
        ((run, "--by", "Ann"), "say something"),
        ((run, "--withdraw", "--comment", "x"), "nothing was said of it"),
        ((run, "--cause", "F2", "--again"), "--again"),
        ((run, "nosuchrun", "--cause", "F2"), "no run begins with 'nosuchrun'"),
    ):
        done = place.seatrial("judge", *words)
        assert done.code == 2, (words, done.said)
        assert said in done.err
    assert not place.events(TAG, RunReviewed)
