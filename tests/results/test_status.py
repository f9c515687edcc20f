from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from seatrial.cli.status_table import print_json, print_status
from seatrial.execute.trial_folder import Record
from seatrial.journal.events import (
    AlertRaised,
    GaugeRead,
    NodeDown,
    NodeExcluded,
    TestAdmitted,
    TestStopped,
    TrialPaused,
    TrialResumed,
)
from seatrial.model.codes import FAILED
from seatrial.model.machine import Machine, NodeGroup
from seatrial.model.plan import Component, Criterion
from seatrial.model.policy import Entry, ThrottleRule, Window
from seatrial.model.test import TrialOptions
from seatrial.results.status import Status, status
from seatrial.show.text import BLOCKS, PLAIN

from .stories import Story, at, cases_of, sustained

COMPONENT = Component(
    component="stability",
    kind="sustained",
    criteria=[
        Criterion(criterion="utilisation", at_least="90%"),
        Criterion(criterion="accepted_runs", at_least=2),
    ],
)


def record_of(story: Story, **more: Any) -> Record:
    given: dict[str, Any] = {
        "tag": "accept-stability",
        "created": at(0),
        "version": "0.1.0",
        "user": "tester",
        "host": "login1",
        "asked": TrialOptions(suites=[]),
        "machine": Machine(machine="m", nodes=[NodeGroup(names="n[1-4]", cores=1)]),
        "references": "references.yaml",
        "tests": {},
        "policy": story.policy,
        "plan": "accept",
        "component": COMPONENT,
        "phase": "one",
        "rehearsed": True,
    }
    return Record(**(given | more))


@pytest.fixture
def story() -> Story:
    cases = cases_of(2, 1)
    entries = [Entry(name="a", copies=2), Entry(name="b", weight=0.5)]
    story = Story(cases, sustained(cases, 10, entries=entries))
    story.run(0, 0, 2)
    story.run(0, 2, 3, FAILED)
    story.run(0, 3, 0, None)
    story.run(1, 9, 0, None, queued=3.5)
    story.tell(1, AlertRaised, kind="short", subject="b", text="b: 0 in flight instead of 2")
    story.tell(3, AlertRaised, kind="short", subject="b", text="b: 0 in flight instead of 2")
    story.tell(1, AlertRaised, kind="silent", text="nothing has happened")
    story.tell(3, NodeDown, nodes="n[3-4]", reason="power")
    story.tell(3, NodeExcluded, nodes="n1,n2", reason="3 failures")
    story.tell(3.75, TestStopped, test="b", reason="3 wrong answers")
    story.events = [event for event in story.events if event.time <= at(4)]
    return story


def stands(story: Story, **more: Any) -> Status:
    events = sorted(story.events, key=lambda event: event.time)
    return status(record_of(story, **more), story.cases, events, at(4))


def test_an_alert_that_is_over_is_open_no_more(story: Story) -> None:
    told = {"kind": "scheduler", "subject": "squeue"}
    story.tell(3.1, AlertRaised, text="squeue failed", **told)
    assert "squeue failed" in [alert.text for alert in stands(story).alerts]
    story.tell(3.2, AlertRaised, text="squeue answers again", active=0, **told)
    assert [alert.kind for alert in stands(story).alerts] == ["short"]
    story.tell(3.3, AlertRaised, text="squeue failed", **told)
    assert [alert.times for alert in stands(story).alerts if alert.kind == "scheduler"] == [2]


@pytest.mark.parametrize(("most", "expected"), [(0, 2), (1, 1), (5, 2)])
def test_no_more_is_expected_than_the_cap_of_a_test(most: int, expected: int) -> None:
    cases = cases_of(1)
    entries = [Entry(name="a", weight=0.5, most=most)]
    (part,) = stands(Story(cases, sustained(cases, 10, entries=entries))).parts
    assert part.expected == expected


def test_where_a_component_stands(story: Story) -> None:
    found = stands(story)
    assert (found.component, found.phase, found.kind) == ("stability", "one", "sustained")
    assert (found.state, found.clock, found.duration) == ("running", 4 * 3600, 10 * 3600)
    assert found.utilisation == 4 / 16
    a, b = found.parts
    assert (a.in_flight, a.running, a.expected, a.accepted) == (1, 1, 2, 1)
    assert a.verdicts == {"pass": 1, "failed": 1}
    assert (b.in_flight, b.running, b.expected, b.stopped) == (1, 0, 0, "3 wrong answers")
    (alert,) = found.alerts
    assert (alert.kind, alert.subject, alert.times, alert.time) == ("short", "b", 2, at(3))
    assert (found.down, found.excluded) == ("n[3-4]", [("n[1-2]", "3 failures")])
    assert [results[0].state for results in found.criteria] == ["not met", "undecided", "undecided"]
    assert found.verdict == "not met"


def test_the_moment_of_a_rehearsal_is_its_last_event(story: Story) -> None:
    found = status(record_of(story), story.cases, story.events)
    assert found.now == max(event.time for event in story.events)


def test_it_is_shown_in_80_columns(
    story: Story, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seatrial.show.text.screen_width", lambda: 80)
    waived = "; ".join(["correct answers waived"] * 9)
    print_status([replace(stands(story), verdict_words=f"not met: {waived}")])
    text = capsys.readouterr().out
    assert all(len(line) <= 80 for line in text.splitlines())
    assert " ".join(text.split()).count("correct answers waived") == 9
    for words in (
        "stability",
        "not met",
        "rehearsed",
        "25.0 %",
        "b: 0 in flight",
        "n[3-4]",
        "n[1-2]",
    ):
        assert words in text


def test_sub_phases_are_shown_where_there_are_several(
    story: Story, capsys: pytest.CaptureFixture[str]
) -> None:
    (only,) = stands(story).sub_phases
    assert (only.end, only.clock, only.accepted) == (None, 4 * 3600, 1)
    print_status([stands(story)])
    assert "sub-phase" not in capsys.readouterr().out
    story.tell(2.5, TrialPaused, reason="maintenance")
    story.tell(3, TrialResumed)
    print_status([stands(story)])
    lines = capsys.readouterr().out.splitlines()
    at_title = next(i for i, line in enumerate(lines) if line.split()[:1] == ["sub-phase"])
    first, second = lines[at_title + 1 : at_title + 3]
    assert first.split()[0] == "1" and first.endswith("2 h 30 m       1  maintenance")
    assert second.split()[0] == "2" and "1 h 0 m" in second
    print_json("p", [stands(story)], {})
    (found,) = msgspec.json.decode(capsys.readouterr().out)["trials"]
    assert found["sub_phases"][0] == {
        "number": 1,
        "from": at(0),
        "to": at(2.5),
        "clock": 9000.0,
        "ended_by": "maintenance",
        "accepted": 1,
    }
    assert found["sub_phases"][1]["to"] is None


def test_its_course_is_drawn_in_signs_that_the_output_has(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    for encoding, signs in (("utf-8", BLOCKS), ("ascii", PLAIN)):
        out = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
        monkeypatch.setattr("sys.stdout", out)
        print_status([stands(story)])
        out.flush()
        assert isinstance(out.buffer, io.BytesIO)
        lines = out.buffer.getvalue().decode(encoding).splitlines()
        course = next(line for line in lines if line.startswith("accepted over time"))
        drawn = set(course.split("|")[1])
        assert drawn <= set(signs)
        assert len(drawn) > 1


def test_it_is_json_for_programs(story: Story, capsys: pytest.CaptureFixture[str]) -> None:
    print_json("p", [stands(story)], {})
    (found,) = msgspec.json.decode(capsys.readouterr().out)["trials"]
    assert found["parts"][0]["test"] == "a"
    assert found["criteria"][0][0]["numbers"]["cause"] == "idle"


def test_a_trial_without_a_plan_stands_somewhere_too(tmp_path: Path) -> None:
    story = Story(cases_of(1))
    found = stands(story, component=None, plan="", phase="", rehearsed=False)
    assert (found.criteria, found.verdict, found.parts[0].expected) == ([], "no criteria", 0)


def test_what_holds_launches_back_is_told_with_its_numbers_and_times() -> None:
    cases = cases_of(1, 1)
    throttle = ThrottleRule(gauge="mds", high=10, low=5, stale_after=7200)
    window = Window(start=3600, end=4 * 3600, reason="backup", entries=[1])
    story = Story(cases, sustained(cases, 10, throttles=[throttle], blackouts=[window]))
    story.tell(0.5, GaugeRead, gauge="mds", value=12)
    story.tell(1, GaugeRead, gauge="mds", value=7)
    story.tell(2, TestStopped, test="a", reason="3 wrong answers")
    gauge, blackout, stopped = stands_at(story, 2).held_back_by
    assert (gauge.kind, gauge.what, gauge.value) == ("gauge", "mds", 7)
    assert (gauge.low, gauge.high, gauge.since) == (5, 10, at(0.5))
    assert (blackout.kind, blackout.since, blackout.until) == ("blackout", at(1), at(4))
    assert "blackout of b (backup) ends in 2 h" in blackout.text
    assert (stopped.kind, stopped.what) == ("stopped", "a")
    story.tell(2.5, GaugeRead, gauge="mds", value=4)
    story.tell(2.5, TestAdmitted, test="a")
    assert [hold.kind for hold in stands_at(story, 3).held_back_by] == ["blackout"]
    (stale,) = stands_at(story, 5).held_back_by
    assert (stale.kind, stale.since) == ("gauge", at(4.5))
    assert "no reading for" in stale.text


def stands_at(story: Story, hour: float) -> Status:
    return status(record_of(story), story.cases, story.events, at(hour))
