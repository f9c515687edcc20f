"""`seatrial accept evidence` and `record`, `seatrial issue`: in status, report and `verify`."""

from __future__ import annotations

import getpass
import hashlib
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from seatrial.journal.events import EvidenceGiven, IssueRecorded, PlanEntry, RunJudged
from tests.execute.plans import short
from tests.programs import Done, Workplace

RECORDS = "p-records"


def write(place: Workplace, evidence: Sequence[dict[str, Any]], **keys: Any) -> Path:
    """A plan ``p``: the component ``vendor`` has documents, ``runs`` has a test."""
    short(place, "a")
    vendor = {"component": "vendor", "evidence": list(evidence)}
    runs = {"component": "runs", "criteria": [{"criterion": "pass_rate", "at_least": "100%"}]}
    plan = {"plan": "p", "machine": "machine.yaml", "suites": ["suite"], **keys}
    path = place.folder / "plan.yaml"
    components = [vendor, runs] if evidence else [runs]
    path.write_text(yaml.safe_dump({**plan, "components": components}))
    return path


def evidence(place: Workplace, document: str, file: Path, *words: str) -> Done:
    given = ("evidence", "plan.yaml", document, str(file))
    return place.seatrial("accept", *given, "--by", "Ann", *words)


def issue(place: Workplace, act: str, *words: str) -> Done:
    by = () if act == "list" else ("--by", "Ann")
    return place.seatrial("issue", act, "plan.yaml", *words, *by)


def report(place: Workplace, name: str = "report.json") -> Any:
    made = place.seatrial("report", "plan.yaml", "-o", str(place.folder / name))
    assert made.code == 0, made.said
    text = (place.folder / name).read_text()
    return json.loads(text) if name.endswith(".json") else text


def status(place: Workplace) -> tuple[int, list[dict[str, Any]], dict[str, list[Any]]]:
    """The exit code, the trials, and what people recorded about the plan."""
    done = place.seatrial("accept", "status", "plan.yaml", "--format", "json")
    found = json.loads(done.out)
    return done.code, found["trials"], found["records"]


# ---- evidence ---------------------------------------------------------------------------------


@pytest.mark.parametrize("written", [{"pending": True}, {}])
def test_a_document_that_is_not_there_yet_keeps_nothing_from_running(
    place: Workplace, written: dict[str, Any]
) -> None:
    write(place, [{"document": "burn-in.pdf", "clause": "2.1", **written}])
    done = place.seatrial("accept", "plan.yaml", "-q")
    assert done.code == 3, done.said
    assert "evidence of vendor: burn-in.pdf is awaited" in done.out
    assert re.search(r"^vendor +awaited$", done.out, re.MULTILINE)
    code, (runs,), records = status(place)
    (vendor,) = records["evidence"]
    assert (code, runs["verdict"], vendor["state"]) == (3, "met", "awaited")
    before = report(place)
    assert (before["verdict"], before["complete"]) == ("awaited", False)
    assert before["notices"] == ["vendor: awaited: burn-in.pdf."]
    paper = place.folder / "from-vendor.pdf"
    paper.write_bytes(b"all is well")
    done = evidence(place, "burn-in.pdf", paper, "--on", "2026-05-04")
    assert done.code == 0, done.said
    sha256 = hashlib.sha256(b"all is well").hexdigest()
    (event,) = place.events(RECORDS, EvidenceGiven)
    assert (event.document, event.file, event.sha256) == ("burn-in.pdf", paper.name, sha256)
    assert (event.names, event.on, event.size) == (["Ann"], "2026-05-04", 11)
    assert event.by.startswith(f"{getpass.getuser()}@")
    code, _, records = status(place)
    (vendor,) = records["evidence"]
    assert (code, vendor["state"]) == (0, "shown by evidence")
    (one,) = vendor["evidence"]
    assert (one["sha256"], one["signed_by"], one["clause"]) == (sha256, "Ann", "2.1")
    after = report(place)
    assert (after["verdict"], after["complete"], after["notices"]) == ("met", True, [])


def test_a_document_that_changed_after_it_was_signed_for_is_told_everywhere(
    place: Workplace,
) -> None:
    there = place.folder / "there.pdf"
    there.write_bytes(b"as signed")
    sha256 = hashlib.sha256(b"as signed").hexdigest()
    signed = {"sha256": sha256, "signed_by": "V", "signed_on": "2026-05-01"}
    write(place, [{"document": "there.pdf", **signed}, {"document": "later.pdf"}])
    later = place.folder / "later.pdf"
    later.write_bytes(b"later")
    assert place.seatrial("accept", "plan.yaml", "-q").code == 3
    assert evidence(place, "later.pdf", later).code == 0
    assert status(place)[0] == 0
    made = report(place, "report.html")
    verified = place.seatrial("report", "verify", "report.html")
    assert "changed" not in verified.said
    for paper, other in ((later, there), (there, later)):
        kept = paper.read_bytes()
        paper.write_bytes(b"not that")
        code, _, records = status(place)
        (vendor,) = records["evidence"]
        states = {one["document"]: one["state"] for one in vendor["evidence"]}
        assert (code, vendor["state"]) == (3, "evidence changed")
        assert states == {paper.name: "changed", other.name: "as it was"}
        words = place.seatrial("accept", "status", "plan.yaml").out
        assert f"{paper.name}, signed by" in words
        assert "it CHANGED since it was signed for" in words
        told = report(place)
        assert (told["verdict"], told["complete"]) == ("undecided", False)
        assert told["notices"] == [f"vendor: changed since it was signed for: {paper.name}."]
        verified = place.seatrial("report", "verify", "report.html")
        assert verified.code == 1, verified.said
        assert "changed" in verified.said
        paper.write_bytes(kept)
    assert status(place)[0] == 0
    assert report(place, "report.html")
    assert made


def test_a_document_is_given_once_unless_it_is_said_why(place: Workplace) -> None:
    write(place, [{"document": "later.pdf"}])
    paper, other = place.folder / "a.pdf", place.folder / "b.pdf"
    paper.write_bytes(b"one")
    other.write_bytes(b"two")
    assert evidence(place, "later.pdf", paper).code == 0
    refused = evidence(place, "later.pdf", other)
    assert refused.code == 2
    assert "was given" in refused.err
    assert "by Ann" in refused.err
    assert evidence(place, "later.pdf", other, "--again", "a page was missing").code == 0
    _, _, records = status(place)
    (vendor,) = records["evidence"]
    (one,) = vendor["evidence"]
    assert (one["file"], one["earlier"]) == ("b.pdf", 1)


@pytest.mark.parametrize(
    ("document", "file", "said"),
    [
        ("nowhere.pdf", "a.pdf", "the plan has no such document; these come later: later.pdf"),
        ("there.pdf", "a.pdf", "the plan has its checksum"),
        ("later.pdf", "missing.pdf", "missing.pdf: cannot be read"),
        ("sealed.pdf", "a.pdf", "it is not the document that the plan names"),
    ],
)
def test_what_is_no_awaited_document_is_refused(
    place: Workplace, document: str, file: str, said: str
) -> None:
    (place.folder / "a.pdf").write_bytes(b"one")
    sha256 = hashlib.sha256(b"one").hexdigest()
    signed = {"signed_by": "V", "signed_on": "2026-05-01"}
    there = {"document": "a.pdf", "sha256": sha256, **signed}
    sealed = {"document": "sealed.pdf", "pending": True, "sha256": "0" * 64}
    (place.folder / "there.pdf").write_bytes(b"one")
    there["document"] = "there.pdf"
    write(place, [there, {"document": "later.pdf"}, sealed])
    done = evidence(place, document, place.folder / file)
    assert done.code == 2, done.said
    assert said in done.err
    assert not (place.trials / RECORDS).exists()


# ---- what happened ----------------------------------------------------------------------------


def test_milestones_parts_and_incidents_are_in_status_and_report(place: Workplace) -> None:
    place.local(cores=2)
    write(place, [])
    assert place.seatrial("accept", "plan.yaml", "-q").code == 0
    record = ("accept", "record", "plan.yaml")
    for words in (
        ("milestone", "phase 1 was handed over"),
        ("part", "DIMM 7", "--at", "2026-11-20T14:03Z"),
        ("incident", "F2 was down"),
    ):
        done = place.seatrial(*record, *words, "--by", "Ann")
        assert done.code == 0, done.said
    found = place.events(RECORDS, PlanEntry)
    assert [event.kind for event in found] == ["milestone", "part", "incident"]
    code, _, records = status(place)
    assert code == 0
    assert [entry["kind"] for entry in records["entries"]] == ["part", "milestone", "incident"]
    assert "DIMM 7" in place.seatrial("accept", "status", "plan.yaml").out
    (table,) = report(place)["records"]
    assert [row[1] for row in table["rows"]] == ["part", "milestone", "incident"]
    refused = place.seatrial(*record, "part", "DIMM 8", "--nodes", "n9999", "--by", "Ann")
    assert refused.code == 2
    assert "n9999 is not a node" in refused.err


# ---- issues -----------------------------------------------------------------------------------


def test_issues_are_opened_changed_and_closed_and_open_ones_head_the_report(
    place: Workplace,
) -> None:
    write(place, [])
    assert place.seatrial("accept", "plan.yaml", "-q").code == 0
    (run, *_) = (event.run_id for event in place.events("p-runs", RunJudged))
    first = issue(place, "open", "the fabric drops packets", "--severity", "minor")
    assert first.code == 0, first.said
    assert "issue 1  open" in first.out
    words = ("--severity", "major", "--component", "runs", "--run", run, "--owner", "Bob")
    assert "issue 2  open" in issue(place, "open", "a run is slow", *words).out
    listed = json.loads(issue(place, "list", "--format", "json").out)
    assert [(one["issue"], one["severity"]) for one in listed] == [(2, "major"), (1, "minor")]
    assert listed[0]["runs"] == [f"p-runs/{run}"]
    assert (listed[0]["owner"], listed[0]["opened_by"]) == ("Bob", ["Ann"])
    made = report(place)
    assert [one["issue"] for one in made["issues"]] == [2, 1]
    page = report(place, "report.md")
    assert page.index("Open issues") < page.index("## Summary")
    assert "the fabric drops packets" in page
    html = report(place, "report.html")
    assert html.index("Open issues") < html.index("<h2>Summary</h2>")
    assert issue(place, "change", "2", "--owner", "Eve", "--comment", "looked at").code == 0
    assert issue(place, "close", "1", "--comment", "a cable").code == 0
    listed = json.loads(issue(place, "list", "--format", "json").out)
    assert [(one["issue"], one["owner"], one["text"]) for one in listed] == [
        (2, "Eve", "a run is slow")
    ]
    assert "issue" in place.seatrial("accept", "status", "plan.yaml").out
    assert "a run is slow" in place.seatrial("accept", "status", "plan.yaml").out
    again = issue(place, "close", "1", "--comment", "again")
    assert again.code == 2
    assert "is closed already" in again.err
    assert issue(place, "change", "1", "--reopen").code == 0
    assert len(place.events(RECORDS, IssueRecorded)) == 5
    assert place.seatrial("accept", "plan.yaml", "-q").code == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("close", "7", "--comment", "x"), "7: p has no such issue; there are none"),
        (("open", " "), "say what the issue is"),
        (("open", "x", "--component", "nowhere"), "p has no component 'nowhere'"),
        (("open", "x", "--run", "nosuchrun"), "no run begins with 'nosuchrun'"),
        (("open", "x", "--nodes", "n["), "--nodes"),
        (("open", "x", "--severity", "bad"), "is not one of 'critical', 'major', 'minor'"),
        (("change", "1"), "say what changes"),
    ],
)
def test_what_is_no_issue_is_refused(place: Workplace, words: tuple[str, ...], said: str) -> None:
    write(place, [])
    done = issue(place, *words)
    assert done.code == 2, done.said
    assert said in done.err
    assert not (place.trials / RECORDS).exists()
