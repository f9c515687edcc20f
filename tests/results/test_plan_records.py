from __future__ import annotations

from seatrial.journal.events import EvidenceGiven, IssueRecorded, PlanEntry
from seatrial.results.records import PlanRecords


def test_the_first_document_stands_unless_a_later_one_says_why() -> None:
    records = PlanRecords()
    first = EvidenceGiven(time=1, document="a.pdf", sha256="1")
    late = EvidenceGiven(time=2, document="a.pdf", sha256="2")
    third = EvidenceGiven(time=3, document="a.pdf", sha256="3", why="a page was missing")
    records.fold((first, late))
    assert records.given == {"a.pdf": [first]}
    records.apply(third)
    assert records.given == {"a.pdf": [first, third]}


def test_what_a_change_of_an_issue_does_not_say_stays() -> None:
    records = PlanRecords()
    opened = IssueRecorded(
        time=1, issue=1, state="open", text="slow", severity="minor", runs=["t/a"], names=["Ann"]
    )
    records.apply(opened)
    records.apply(IssueRecorded(time=2, issue=1, owner="Bob", runs=["t/b", "t/a"], names=["Eve"]))
    records.apply(IssueRecorded(time=3, issue=2, state="open", severity="critical"))
    records.apply(IssueRecorded(time=4, issue=3, state="open"))
    assert [issue.issue for issue in records.open_issues] == [2, 1, 3]
    one = records.issues[1]
    assert (one.text, one.severity, one.owner, one.runs) == ("slow", "minor", "Bob", ["t/a", "t/b"])
    assert (one.opened, one.opened_by, one.changed, one.by) == (1, ["Ann"], 2, ["Eve"])
    records.apply(IssueRecorded(time=5, issue=1, state="closed", comment="mended"))
    assert [issue.issue for issue in records.open_issues] == [2, 3]
    assert records.issues[1].comments == ["mended"]


def test_a_change_of_an_issue_whose_opening_is_damaged_is_kept() -> None:
    records = PlanRecords()
    records.apply(IssueRecorded(time=1, issue=7, comment="looked at"))
    assert records.issues[7].is_open


def test_what_happened_is_in_the_order_of_its_times() -> None:
    records = PlanRecords()
    records.apply(PlanEntry(time=9, kind="milestone", text="now"))
    records.apply(PlanEntry(time=10, kind="part", text="before", at=3))
    assert [(entry.text, entry.at) for entry in records.entries] == [("before", 3), ("now", 9)]
