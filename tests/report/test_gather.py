"""The verdict of a report on a plan of which a component waits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from seatrial.report.gather import gather
from seatrial.report.planned import find
from seatrial.store.ingest import synced
from tests.rehearse.stage import Stage

WAIVER = {"reason": "known", "by": "both sides", "on": "2026-06-01"}


def verdict(folder: Path, waits: bool, **component: Any) -> tuple[str, bool]:
    """The verdict of the report on a trial of three runs that fail, and whether it is complete;
    with a component of which nobody began a trial if one ``waits``."""
    folder.mkdir()
    stage = Stage(folder, nodes=2)
    stage.test("bad")
    stage.behave("bad", elapsed={"mean": "10s", "sd": "1s"}, fails="100%")
    stage.component("first", kind="once", repeat=3, tests=["bad"], **component)
    stage.play()
    if waits:
        stage.component("later", kind="once", tests=["bad"])
        stage.write()
    found = find(stage.trials, stage.plan_file, rehearsed=True)
    with synced(folder / "store.sqlite", stage.trials) as store:
        report = gather(found, store)
    return report.verdict, report.complete


@pytest.mark.parametrize(
    ("least", "waivers", "begun", "waiting"),
    [
        ("90%", [], "not met", "not met"),
        ("90%", [WAIVER], "waived", "undecided"),
        ("0%", [], "met", "undecided"),
        (None, [], "no criteria", "no criteria"),
    ],
)
def test_what_is_met_or_waived_is_undecided_while_a_component_waits(
    tmp_path: Path, least: str | None, waivers: list[dict[str, str]], begun: str, waiting: str
) -> None:
    criteria = [{"criterion": "pass_rate", "at_least": least}] if least else []
    keys = {"criteria": criteria, "waivers": waivers}
    assert verdict(tmp_path / "begun", False, **keys) == (begun, True)
    assert verdict(tmp_path / "waiting", True, **keys) == (waiting, False)
