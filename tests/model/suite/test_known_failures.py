"""Known failures in plans and tests: the verdict `known`, one that passes again, one whose day is
over; in commands, exports and pages' data."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from seatrial.journal.events import AlertRaised, RunJudged, TrialEnded
from seatrial.model.codes import KNOWN
from tests.execute.plans import TAG, accept, control, ends, short, write_plan
from tests.programs import Workplace


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    """An empty folder to work in, for commands."""
    workplace = Workplace(tmp_path)
    workplace.local(cores=2)
    return workplace


TODAY = datetime.now(UTC).date()
LATER, YESTERDAY = (str(TODAY + timedelta(days=days)) for days in (30, -1))


def known(until: str = LATER, **keys: object) -> dict[str, object]:
    verdicts = ["failed", "wrong answer", "build failed"]
    return {"reason": "bug 7", "until": until, "verdicts": verdicts, **keys}


def test_a_known_failure_of_a_test_is_no_failure_of_its_trial(place: Workplace) -> None:
    place.local(toolchains={"plain": {}, "other": {}})
    place.test("good", "echo ok", toolchains=["*"])
    mine = [known(toolchains=["other"])]
    script = 'test "$TOOLCHAIN" = plain && echo ok'
    place.test("half", script, toolchains=["*"], known_failures=mine)
    broken = {"script": "echo 'ifx: internal compiler error' >&2; exit 1"}
    place.test("unbuilt", build=broken, toolchains=["*"], known_failures=[known()])
    done = place.run("--name", "t", "--toolchain", "*")
    assert done.code == 0, done.said
    by_case = {(each.test, each.code): each.reason for each in place.events("t", RunJudged)}
    assert by_case["half", KNOWN.number].endswith(f"(known until {LATER}: bug 7)")
    assert by_case["half", KNOWN.number].startswith("failed: ")
    assert by_case["unbuilt", KNOWN.number].startswith("build failed: ")
    assert ("half", 0) in by_case
    (end,) = place.events("t", TrialEnded)
    assert end.failed == 0
    row = next(line for line in done.out.splitlines() if line.startswith("half@other"))
    assert "known: failed: " in row and "bug 7" in " ".join(done.out.split())
    (trial,) = json.loads(place.seatrial("trials", "--format", "json").out)
    numbers = {name: trial[name] for name in ("runs", "passed", "failed", "known", "waiting")}
    assert numbers == {"runs": 6, "passed": 3, "failed": 0, "known": 3, "waiting": 0}
    assert "known" in place.seatrial("trials").out.splitlines()[0]
    matrix = place.seatrial("matrix", "t", "--format", "json")
    assert matrix.code == 0, "a known failure is no failure"
    shown = json.loads(matrix.out)
    assert shown["total"] == {"passed": 3, "known": 3}
    cells = {row["test"]: [cell["state"] for cell in row["cells"]] for row in shown["rows"]}
    assert sorted(cells["half"]) == ["known", "passed"]
    assert cells["unbuilt"] == ["known", "known"]
    assert "bug 7" in place.seatrial("matrix", "t").out
    known_runs = place.seatrial("runs", "--trial", "t", "--failed", "--format", "json")
    assert json.loads(known_runs.out) == []
    runs = json.loads(place.seatrial("runs", "--trial", "t", "--format", "json").out)
    assert sorted(run["verdict"] for run in runs) == ["known"] * 3 + ["pass"] * 3
    assert place.seatrial("export", "t", "--format", "junit", "-o", "j.xml").code == 0
    root = ElementTree.parse(place.folder / "j.xml").getroot()
    assert (root.get("failures"), root.get("errors"), root.get("skipped")) == ("0", "0", "3")
    kinds = {skipped.get("type") for skipped in root.iter("skipped")}
    assert kinds == {"pytest.xfail"}


def test_what_passes_again_is_told_and_what_is_over_is_a_failure_again(place: Workplace) -> None:
    place.test("mended", "echo ok", repeat=3, known_failures=[known()])
    assert place.run("--name", "a").code == 0
    (alert,) = place.events("a", AlertRaised)
    assert (alert.kind, alert.subject) == ("known", "mended@plain")
    assert "bug 7" in alert.text
    place.test("mended", "exit 1", repeat=1, known_failures=[known(YESTERDAY)])
    assert place.run("--name", "b").code == 1
    place.test("mended", "exit 1", repeat=1, known_failures=[known(f"{datetime.now(UTC):%F}")])
    assert place.run("--name", "c").code == 0
    place.test("mended", "exit 1", known_failures=[known(verdicts=["wrong answer"])])
    assert place.run("--name", "d").code == 1, "another failure is a new one"


def test_a_plan_has_known_failures_which_no_rate_counts(place: Workplace) -> None:
    short(place, "good")
    short(place, "bad", verify=[{"contains": "never"}])
    criteria = [{"criterion": "pass_rate", "at_least": "99%"}]
    path = write_plan(place, duration="2s", tests=["good", "bad"], criteria=criteria)
    plan = yaml.safe_load(path.read_text())
    path.write_text(yaml.safe_dump({**plan, "known_failures": [known(tests=["bad"])]}))
    done = accept(place)
    assert done.code == 1, "a test that never gave a right answer is waived by name, or not met"
    assert len(ends(place, "bad")) > 3, "known failures do not stop a test"
    (one,) = json.loads(control(place, "status", "--format", "json").out)["trials"]
    (rate, *_), (every, *_) = one["criteria"]
    assert (rate["state"], rate["value"]) == ("met", 1.0)
    assert rate["numbers"]["known"] == len(ends(place, "bad"))
    assert (every["state"], "bad never gave a right answer" in every["why"]) == ("not met", True)
    assert place.seatrial("report", "plan.yaml", "-o", "r.md").code == 0
    report = (place.folder / "r.md").read_text()
    (row,) = (line for line in report.splitlines() if line.startswith("| mix | "))
    assert row.split(" | ")[6] == "0", "no known failure is among those that did not pass"
    assert f"No rate counts {len(ends(place, 'bad'))} known of these." in report
    plan["components"][0]["waivers"] = [
        {"tests": ["bad"], "reason": "bug 7", "by": "both", "on": "2026-05-01"}
    ]
    (place.trials / TAG).rename(place.folder / "before")
    path.write_text(yaml.safe_dump({**plan, "known_failures": [known(tests=["bad"])]}))
    assert accept(place).code == 0


def test_a_rehearsal_knows_them_too(place: Workplace) -> None:
    short(place, "bad")
    behaviour = {"tests": {"bad": {"elapsed": "1s", "wrong": "50%"}}}
    path = write_plan(place, duration="2m", tests=["bad"], rehearsal=behaviour)
    plan = yaml.safe_load(path.read_text())
    path.write_text(yaml.safe_dump({**plan, "known_failures": [known(tests=["bad"])]}))
    done = place.seatrial("rehearse", "plan.yaml", "--json")
    assert done.code == 0, done.said
    (trial,) = json.loads(done.out)["trials"]
    assert trial["alerts"] == {"known": 1}, "it passes at times"
    verdicts = {each.code for each in place.events(trial["trial"], RunJudged)}
    assert verdicts == {0, KNOWN.number}


def test_bad_input(place: Workplace) -> None:
    place.test("one", known_failures=[known("May", tests=["x"], verdicts=["lost"]), {"until": ""}])
    done = place.run("--name", "t")
    assert done.code == 2
    for said in (
        "known_failures[0].until: 'May' is not a date",
        "known_failures[0].tests: is for plans",
        "known_failures[0].verdicts[0]: 'lost' cannot be known",
        "known_failures[1].reason",
        "known_failures[1].verdicts: names none, so that each new failure would be known",
    ):
        assert said in done.err, said
    place.test("one")
    path = write_plan(place, tests=["one"])
    plan = yaml.safe_load(path.read_text())
    wrong = [known(tests=["two"], toolchains=["three"]), known(reason=" ")]
    path.write_text(yaml.safe_dump({**plan, "known_failures": wrong}))
    done = accept(place)
    assert done.code == 2
    for said in (
        "known_failures[0].tests[0]: 'two' matches none of one",
        "known_failures[0].toolchains[0]: 'three' matches none of plain",
        "known_failures[1].reason: is empty",
        "known_failures[1].tests: names no tests, no toolchains and no causes",
    ):
        assert said in done.err, said
