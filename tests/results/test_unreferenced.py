"""Figures without a reference: counted, named, in JUnit, and by an option in the exit code."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from seatrial.judge.references import Reference, References
from seatrial.results.references import UnreferencedFigures, unreferenced
from seatrial.results.store.tables import CaseRow, SummaryRow
from tests.programs import Workplace

REFERENCES = "references: [{test: t, metric: rate, unit: MB/s, min: 1}]\n"


def a_row(metric: str, better: str = "higher", n: int = 1, stage: str = "") -> SummaryRow:
    return SummaryRow("c1", "t@gcc", stage, metric, "MB/s", better, n, 0, 1.0, 1.0, 1.0, 0.0)


def test_figures_with_a_direction_and_a_right_run_are_counted() -> None:
    case = CaseRow("c1", "t@gcc", "t", "app", "gcc", {}, 1, 1, 1, 1, 60.0, "", "b", 1)
    rows = [a_row("rate"), a_row("rate", stage="full"), a_row("steps", "none"), a_row("no", n=0)]
    known = References.of([Reference(test="t", metric="rate", unit="MB/s", min=1.0)])
    found = unreferenced(rows, {"c1": case}, known)
    assert found == UnreferencedFigures(2, ["t@gcc rate"])
    assert found.words == "1 of 2 figures has no reference: t@gcc rate"
    assert UnreferencedFigures(3, []).words == ""
    assert UnreferencedFigures(9, list("abcde")).words.endswith(
        "have no reference: a, b, c and 2 more"
    )


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    workplace = Workplace(tmp_path)
    workplace.local()
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "references.yaml").write_text(REFERENCES)
    metrics = {
        name: {"find": rf"{name} (\S+)", "unit": "MB/s", "better": "higher"}
        for name in ("rate", "other")
    }
    workplace.test("t", "echo rate 5; echo other 7", metrics=metrics)
    return workplace


def test_a_run_counts_and_names_them_and_by_an_option_is_no_pass(place: Workplace) -> None:
    said = "1 of 2 figures has no reference: t@plain other\n"
    done = place.run("--name", "a", "-q")
    assert (done.code, said in done.out) == (0, True), done.said
    required = place.run("--name", "b", "-q", "--require-references")
    assert (required.code, said in required.out) == (3, True), required.said
    assert place.seatrial("resume", "b", "--require-references").code == 3
    assert place.seatrial("resume", "b").code == 0
    again = place.seatrial("judge", "b", "--require-references")
    assert (again.code, said in again.out) == (3, True), again.said
    assert place.seatrial("judge", "b").code == 0
    exported = place.seatrial("export", "b", "--format", "junit").out
    lacking = ET.fromstring(exported).iterfind(".//property[@name='without reference']")
    assert [each.get("value") for each in lacking] == ["other", "other"], "of the suite, of the run"
    more = "{test: t, metric: other, unit: MB/s, max: 9}]"
    file = place.folder / "here" / "references.yaml"
    file.write_text(REFERENCES.replace("]", f", {more}"))
    whole = place.run("--name", "c", "-q", "--require-references")
    assert (whole.code, "reference:" in whole.out) == (0, False), whole.said
    failing = place.test("bad", "exit 1")
    assert failing.is_dir()
    assert place.run("--name", "d", "-q", "--require-references").code == 1
