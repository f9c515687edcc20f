"""Records of people that no command would write, and those of a forged request."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from seatrial.execute import plan_trials, requests
from seatrial.execute.ledger import record
from seatrial.execute.plan.component import Ticks, items_of
from seatrial.execute.plan.prepare import prepare_plan
from seatrial.execute.requests import Request, fault_of
from seatrial.journal.encoding import encode
from seatrial.journal.events import (
    EvidenceGiven,
    IssueRecorded,
    ItemTicked,
    PersonsEvent,
    PlanEntry,
    RunReviewed,
)
from seatrial.model.plan import ChecklistItem
from tests.execute.test_recording import checklist_plan
from tests.programs import Workplace

TICK = ItemTicked(item="1", result="pass", names=["Ann"])
GIVEN = EvidenceGiven(document="a.pdf", sha256="a" * 64, on="2026-05-04", names=["Ann"])
ENTRY = PlanEntry(kind="incident", text="F2 was down\nfor an hour", names=["Ann"])
ISSUE = IssueRecorded(state="open", text="slow", names=["Ann"])
EXCLUDED = RunReviewed(run_id="a", is_excluded=1, names=["Ann", "Bob"])


@pytest.mark.parametrize("event", [TICK, GIVEN, ENTRY, ISSUE, EXCLUDED])
def test_what_commands_write_has_no_fault(event: PersonsEvent | RunReviewed) -> None:
    assert fault_of(event) == ""
    assert "at most 100" in fault_of(replace(event, names=["x" * 101]))
    assert "one line" in fault_of(replace(event, names=["Ann\nBob"]))
    assert "at most 20" in fault_of(replace(event, names=["Ann"] * 21))


@pytest.mark.parametrize(
    ("event", "fault"),
    [
        (replace(TICK, comment="x" * 2001), "2001 characters"),
        (replace(TICK, result="great"), "no result"),
        (replace(GIVEN, sha256="zz"), "SHA-256"),
        (replace(GIVEN, size=-1), "SHA-256"),
        (replace(GIVEN, on="soon"), "not a date"),
        (replace(GIVEN, on="2999-01-01"), "yet to come"),
        (replace(ENTRY, kind="junk"), "no kind"),
        (replace(ENTRY, at=-1), "1970"),
        (replace(ISSUE, issue=-4), "is no issue"),
        (replace(ISSUE, state="junk"), "is no issue"),
        (replace(EXCLUDED, names=["Ann", " ann"]), "agreement"),
    ],
)
def test_what_no_command_writes_is_a_fault(event: PersonsEvent | RunReviewed, fault: str) -> None:
    assert fault in fault_of(event)


def test_a_forged_record_is_left_out_and_holds_up_no_other(place: Workplace) -> None:
    path = checklist_plan(place, items=1)
    folder = plan_trials.begin_records(place.trials, prepare_plan(path))
    for event in (replace(ISSUE, issue=7), replace(ISSUE, state="junk"), replace(ENTRY, kind="")):
        requests.ask(folder, Request(request="record", text=encode(event).decode()))
    recorded = record(folder, ISSUE)
    assert isinstance(recorded, IssueRecorded)
    assert recorded.issue == 1
    assert not list(folder.requests.iterdir())
    done = place.seatrial("accept", "record", str(path), "incident", "x", "--by", "Ann\x1b[31m")
    assert (done.code, "control characters" in done.err) == (2, True), done.said


def test_a_result_is_as_the_bounds_have_it_whatever_a_forged_record_says() -> None:
    item = ChecklistItem(id="cooling", text="Water", unit="C", at_most=25)
    ticks = Ticks()
    ticks.apply(ItemTicked(item="cooling", result="pass", figure=1e308, names=["Ann"]))
    assert items_of([item], ticks)[0].state == "fail"
    ticks = Ticks()
    ticks.apply(ItemTicked(item="cooling", result="pass", names=["Ann"]))
    assert items_of([item], ticks)[0].state == "fail"
