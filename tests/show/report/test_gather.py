"""The verdict of a report on a plan of which a component waits."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from seatrial.results.store.ingest import synced
from seatrial.show.report.gather import gather
from seatrial.show.report.planned import find
from tests.plugins.rehearsal.stage import Stage

WAIVER = {"reason": "known", "by": "both sides", "on": "2026-06-01"}


def verdict(
    folder: Path, waits: bool, fails: str, paper: bytes = b"", **component: Any
) -> tuple[str, bool]:
    """The verdict of the report on a trial of twenty runs, and whether it is complete;
    with a component of which nobody began a trial if one ``waits``, and a document that has become
    ``paper`` since."""
    folder.mkdir(exist_ok=True)
    stage = Stage(folder, nodes=2)
    stage.test("bad")
    stage.behave("bad", elapsed={"mean": "10s", "sd": "1s"}, fails=fails)
    stage.component("first", kind="once", repeat=20, tests=["bad"], **component)
    stage.play()
    if paper:
        (folder / "paper.pdf").write_bytes(paper)
    if waits:
        stage.component("later", kind="once", tests=["bad"])
        stage.write()
    found = find(stage.trials, stage.plan_file, rehearsed=True)
    with synced(folder / "store.sqlite", stage.trials) as store:
        report = gather(found, store)
    return report.verdict, report.complete


@pytest.mark.parametrize(
    ("fails", "least", "waivers", "begun", "waiting"),
    [
        ("50%", "90%", [], "not met", "not met"),
        ("50%", "90%", [WAIVER], "met with waivers", "undecided"),
        ("100%", "90%", [WAIVER], "waived", "undecided"),
        ("50%", "0%", [], "met", "undecided"),
        ("100%", "0%", [], "not met", "not met"),
        ("50%", None, [], "no criteria", "no criteria"),
        ("100%", None, [], "not met", "not met"),
    ],
)
def test_what_is_met_or_waived_is_undecided_while_a_component_waits(
    tmp_path: Path,
    fails: str,
    least: str | None,
    waivers: list[dict[str, str]],
    begun: str,
    waiting: str,
) -> None:
    criteria = [{"criterion": "pass_rate", "at_least": least}] if least else []
    keys: dict[str, Any] = {"criteria": criteria, "waivers": waivers}
    assert verdict(tmp_path / "begun", False, fails, **keys) == (begun, True)
    assert verdict(tmp_path / "waiting", True, fails, **keys) == (waiting, False)


@pytest.mark.parametrize(("content", "complete"), [(b"all is well", True), (b"changed", False)])
def test_a_document_that_was_changed_makes_a_report_incomplete(
    tmp_path: Path, content: bytes, complete: bool
) -> None:
    sha256 = hashlib.sha256(b"all is well").hexdigest()
    signed = {"signed_by": "A. Vendor", "signed_on": "2026-05-01"}
    paper = {"document": "paper.pdf", "sha256": sha256, **signed}
    folder = tmp_path / "stage"
    folder.mkdir()
    (folder / "paper.pdf").write_bytes(b"all is well")
    assert verdict(folder, False, "0%", content, evidence=[paper])[1] is complete
