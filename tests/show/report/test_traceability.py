"""From clauses of the contract to results, by `seatrial accept` and `seatrial report`."""

from __future__ import annotations

import hashlib
import json

import yaml

from tests.execute.plans import short
from tests.programs import Workplace

HEAD = ["clause", "id", "requirement", "component", "by", "tests", "asked", "found", "n", "state"]


def write(place: Workplace) -> None:
    document = place.folder / "vt.pdf"
    document.write_bytes(b"all is well")
    criteria: list[dict[str, object]] = [
        {"criterion": "pass_rate", "at_least": "90%", "clause": "4.10", "id": "R2"},
        {
            "criterion": "every_test",
            "clause": "4.9",
            "id": "R1",
            "about": "All applications run",
        },
        {"criterion": "accepted_runs", "at_least": 1},
        {"criterion": "pass_rate", "tests": ["good"], "at_least": "90%", "id": "R4"},
    ]
    agreed = {"reason": "bug 7", "by": "both", "on": "2026-05-01", "clause": "4.9"}
    paper = {
        "document": document.name,
        "sha256": hashlib.sha256(document.read_bytes()).hexdigest(),
        "signed_by": "Vendor",
        "signed_on": "2026-05-01",
        "clause": "2.1",
        "about": "POST",
    }
    components = [
        {"component": "vt", "evidence": [paper]},
        {
            "component": "st",
            "tests": ["good", "bad"],
            "criteria": criteria,
            "waivers": [
                {**agreed, "tests": ["bad"], "criteria": ["R1", "R2"]},
                {**agreed, "clause": "", "criteria": ["R4"]},
            ],
        },
        {"component": "later", "tests": ["good"], "criteria": [{**criteria[0], "id": "R3"}]},
    ]
    plan = {"plan": "p", "machine": "machine.yaml", "suites": ["suite"], "components": components}
    (place.folder / "plan.yaml").write_text(yaml.safe_dump(plan))


def test_the_report_has_the_table_from_clause_to_result(place: Workplace) -> None:
    short(place, "good")
    short(place, "bad", verify=[{"contains": "never"}])
    write(place)
    done = place.seatrial("accept", "plan.yaml", "--component", "st", "-q")
    assert done.code == 1, "accepted_runs is not waived"
    for name in ("r.json", "r.md", "r.html"):
        assert place.seatrial("report", "plan.yaml", "-o", name).code == 0
    (table,) = json.loads((place.folder / "r.json").read_text())["clauses"]
    rows = [dict(zip(HEAD, row, strict=True)) for row in table["rows"]]
    assert [column["title"] for column in table["columns"]] == HEAD
    assert [(row["clause"], row["id"], row["component"], row["state"]) for row in rows] == [
        ("2.1", "", "vt", "shown by evidence"),
        ("4.9", "R1", "st", "waived (not met)"),
        ("4.9", "", "st", "waiver"),
        ("4.10", "R2", "st", "waived (not met)"),
        ("4.10", "R3", "later", "not begun"),
        ("", "", "st", "not met"),
        ("", "R4", "st", "met (waiver not needed)"),
        ("", "", "st", "waiver not needed"),
    ]
    assert rows[1]["requirement"] == "All applications run"
    assert rows[1]["tests"] == "bad, good"
    assert rows[2]["by"] == "waiver of bad in R1, R2"
    text = (place.folder / "r.md").read_text()
    assert "**From clause to result**" in text
    by = "waived by both on 2026-05-01"
    assert f"- bad in R1, R2: bug 7 ({by})\n- R4: bug 7 ({by}); not needed\n" in text
    assert (place.folder / "r.html").read_text().count(f"{by}; not needed</span>") == 1
    assert "| 4.9 | R1 | All applications run | st | every test | bad, good | all 2 |" in text
    page = (place.folder / "r.html").read_text()
    assert "From clause to result" in page
    assert '<span class="state waived">waived (not met)</span>' in page
    assert '<span class="state shown-by-evidence">shown by evidence</span>' in page
    status = place.seatrial("accept", "status", "plan.yaml")
    assert "4.10 pass rate" in status.out


def test_without_clauses_there_is_no_table_and_what_ran_has_the_shares(place: Workplace) -> None:
    short(place, "good")
    plan = {
        "plan": "p",
        "machine": "machine.yaml",
        "suites": ["suite"],
        "components": [
            {"component": "st", "kind": "sustained", "duration": "2s", "tests": ["good"]}
        ],
    }
    (place.folder / "plan.yaml").write_text(yaml.safe_dump(plan))
    assert place.seatrial("accept", "plan.yaml", "-q").code == 0
    assert place.seatrial("report", "plan.yaml", "-o", "r.json").code == 0
    report = json.loads((place.folder / "r.json").read_text())
    assert report["clauses"] == []
    table = report["components"][0]["ran"][0]
    row = dict(zip([each["title"] for each in table["columns"]], table["rows"][0], strict=True))
    assert (row["test"], row["walltime"], row["planned share"]) == ("good", 1, 1.0)
    assert 0.2 < row["share"] <= 1
