"""`seatrial accept tick`: checklists beside what runs; what is no result; an item ticked twice."""

from __future__ import annotations

import getpass
import hashlib
import json
import re
from typing import Any

import pytest
import yaml

from seatrial.journal.events import ItemTicked, TrialEnded
from tests.execute.plans import short
from tests.programs import Done, Workplace

ITEMS: list[dict[str, Any]] = [
    {"text": "A node is drained and comes back", "clause": "4.2"},
    {"id": "cooling", "text": "Water temperature", "unit": "C", "at_most": 25},
    {"id": "ups", "text": "The UPS takes over", "clause": "4.7"},
]
FT = "p-ft"


def write(place: Workplace, **keys: Any) -> None:
    """A plan ``p`` with the checklist ``ft`` and the component ``runs``."""
    short(place, "a")
    checklist = {"component": "ft", "kind": "checklist", "items": ITEMS, **keys}
    runs = {"component": "runs", "criteria": [{"criterion": "pass_rate", "at_least": "100%"}]}
    behaviour = {"tests": {"*": {"elapsed": "1s"}}}
    plan = {"rehearsal": behaviour, "plan": "p", "machine": "machine.yaml", "suites": ["suite"]}
    path = place.folder / "plan.yaml"
    path.write_text(yaml.safe_dump({**plan, "components": [checklist, runs]}))


def tick(place: Workplace, item: str, *words: str, by: str = "Ann") -> Done:
    return place.seatrial("accept", "tick", "plan.yaml", item, *words, "--by", by)


def status(place: Workplace, expected: int) -> dict[str, dict[str, Any]]:
    """The status of each component by its tag."""
    done = place.seatrial("accept", "status", "plan.yaml", "--format", "json")
    assert done.code == expected, done.said
    return {one["tag"]: one for one in json.loads(done.out)["trials"]}


def test_two_people_tick_a_checklist_beside_what_runs(place: Workplace) -> None:
    write(place)
    done = place.seatrial("accept", "plan.yaml", "-q")
    assert done.code == 3, done.said
    assert "p-ft awaits 3 items" in done.out
    found = status(place, 3)
    assert (found["p-runs"]["state"], found["p-runs"]["verdict"]) == ("ended", "met")
    assert (found[FT]["state"], found[FT]["verdict"]) == ("awaited", "undecided")
    assert tick(place, "1", "--pass").code == 0
    paper = place.folder / "log.txt"
    paper.write_text("21.5 C")
    done = tick(place, "cooling", "--value", "21.5", "--document", str(paper), by="Bob")
    assert done.code == 0, done.said
    assert "1 item awaited: ups" in done.out
    assert tick(place, "ups", "--fail", "--comment", "it did not").code == 0
    (result,) = status(place, 1)[FT]["criteria"][0]
    assert (result["criterion"], result["state"], result["n"]) == ("items_passed", "not met", 3)
    again = tick(place, "ups", "--pass", "--again", "the fuse was replaced", by="Bob")
    assert again.code == 0, again.said
    one = status(place, 0)[FT]
    assert (one["state"], one["verdict"]) == ("ended", "met")
    first, cooling, ups = one["items"]
    assert (first["id"], first["clause"], first["state"]) == ("1", "4.2", "pass")
    assert first["tick"]["by"] == ["Ann"]
    assert first["tick"]["user"].startswith(f"{getpass.getuser()}@")
    assert (cooling["tick"]["figure"], cooling["bound"]) == (21.5, "at most 25 C")
    assert cooling["tick"]["sha256"] == hashlib.sha256(b"21.5 C").hexdigest()
    assert (cooling["tick"]["document"], cooling["tick"]["now"]) == ("log.txt", "as it was")
    assert [old["result"] for old in ups["earlier"]] == ["fail"]
    assert len(place.events(FT, TrialEnded)) == 1
    paper.write_text("26 C")
    one = status(place, 3)[FT]
    assert (one["items"][1]["tick"]["now"], one["verdict"]) == ("changed", "undecided")
    words = place.seatrial("accept", "status", "plan.yaml").out
    assert "log.txt (changed)" in words
    assert re.search(r"fail +replaced .*Ann", words)


def test_an_item_ticked_twice_is_refused_and_the_first_result_stands(place: Workplace) -> None:
    write(place)
    assert tick(place, "1", "--pass").code == 0, "before the plan is begun"
    refused = tick(place, "1", "--fail", by="Bob")
    assert refused.code == 2
    assert "1: pass since" in refused.err
    assert "by Ann" in refused.err
    assert "--again" in refused.err
    assert len(place.events(FT, ItemTicked)) == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("4", "--pass"), "4: is no item; there are 1, cooling, ups"),
        (("1",), "give one of"),
        (("1", "--pass", "--fail"), "give one of"),
        (("1", "--value", "3"), "takes no number"),
        (("cooling", "--pass"), "--value"),
        (("cooling", "--value", "nan"), "nan"),
        (("1", "--waive"), "--comment"),
        (("1", "--pass", "--document", "nowhere.pdf"), "nowhere.pdf: cannot be read"),
        (("1", "--pass", "--component", "nowhere"), "no component 'nowhere'"),
        (("1", "--pass", "--component", "runs"), "has no checklist there"),
    ],
)
def test_what_is_no_result_is_refused(place: Workplace, words: tuple[str, ...], said: str) -> None:
    write(place)
    done = tick(place, *words)
    assert done.code == 2, done.said
    assert said in done.err
    assert not (place.trials / FT / "journal.jsonl").exists()


def test_waived_items_are_named_in_the_verdict(place: Workplace) -> None:
    write(place)
    for words in (("1", "--pass"), ("cooling", "--value", "20")):
        assert tick(place, *words).code == 0
    assert tick(place, "ups", "--waive", "--comment", "comes in July").code == 0
    done = place.seatrial("accept", "plan.yaml", "-q")
    assert done.code == 0, done.said
    one = status(place, 0)[FT]
    (result,) = one["criteria"][0]
    assert (one["verdict"], result["state"], result["without_waiver"]) == (
        "waived",
        "waived",
        "not met",
    )
    assert "ups" in result["why"]
    assert "66.67 %" in one["verdict_words"]


def test_a_checklist_is_not_run_and_the_rehearsal_says_that_it_is_awaited(place: Workplace) -> None:
    write(place)
    assert tick(place, "1", "--pass").code == 0
    for words in (("resume", FT), ("cancel", FT)):
        refused = place.seatrial(*words)
        assert refused.code == 3, refused.said
        assert "is a checklist" in refused.err
    assert place.seatrial("accept", "plan.yaml", "--dry-run").out.startswith("p-ft: awaited")
    done = place.seatrial("rehearse", "plan.yaml")
    assert "ft: awaited, 3 items" in done.out


def test_the_report_has_the_items_and_its_head_what_is_awaited_and_failed(place: Workplace) -> None:
    write(place)
    assert place.seatrial("accept", "plan.yaml", "-q").code == 3
    untouched = report(place)
    assert untouched["notices"] == ["ft: awaited: 3 items (1, cooling, ups)."]
    paper = place.folder / "log.txt"
    paper.write_text("no")
    assert tick(place, "1", "--fail", "--document", str(paper)).code == 0
    assert tick(place, "1", "--pass", "--again", "mended", by="Bob").code == 0
    assert tick(place, "ups", "--fail").code == 0
    made = report(place)
    assert made["notices"] == ["ft: awaited: 1 item (cooling).", "ft: 1 item failed: ups."]
    assert (made["verdict"], made["complete"]) == ("not met", False)
    found = [(row["item"], row["result"], row["counts"], row["document"]) for row in items(made)]
    assert found == [
        ("1", "pass", "", ""),
        ("1", "fail", "replaced", "log.txt"),
        ("cooling", "awaited", "", ""),
        ("ups", "fail", "", ""),
    ]
    assert tick(place, "cooling", "--value", "30", "--document", str(paper)).code == 0
    made = report(place)
    assert any(each["name"] == "document log.txt" for each in made["files"])
    assert documents(made) == [("1", "log.txt"), ("cooling", "log.txt")]
    paper.write_text("yes")
    assert documents(report(place)) == [("1", "log.txt"), ("cooling", "log.txt (changed)")]
    paper.write_text("no")
    made = place.seatrial("report", "plan.yaml", "-o", str(place.folder / "r.html"))
    assert made.code == 0, made.said
    again = tick(place, "cooling", "--value", "20", "--again", "cooler")
    assert again.code == 0, again.said
    verified = place.seatrial("report", "verify", "r.html")
    assert "went on since" in verified.out, "a correction after the end is no forgery"
    assert verified.code == 3, verified.said
    paper.write_text("changed")
    assert place.seatrial("report", "verify", "r.html").code == 1


def report(place: Workplace) -> Any:
    file = place.folder / "report.json"
    made = place.seatrial("report", "plan.yaml", "-o", str(file))
    assert made.code == 0, made.said
    return json.loads(file.read_text())


def items(made: Any) -> list[dict[str, Any]]:
    """The rows of a report's table of the checklist's items."""
    (ft,) = (part for part in made["components"] if part["tag"] == FT)
    (table,) = (table for table in ft["tables"] if table["title"] == "Items")
    titles = [column["title"] for column in table["columns"]]
    return [dict(zip(titles, row, strict=True)) for row in table["rows"]]


def documents(made: Any) -> list[tuple[str, str]]:
    return [(row["item"], row["document"]) for row in items(made) if row["document"]]


def test_a_component_that_was_cut_from_the_plan_is_told(place: Workplace) -> None:
    write(place)
    assert place.seatrial("accept", "plan.yaml", "-q").code == 3
    assert tick(place, "ups", "--fail").code == 0
    path = place.folder / "plan.yaml"
    plan = yaml.safe_load(path.read_text())
    path.write_text(yaml.safe_dump({**plan, "components": plan["components"][1:]}))
    done = place.seatrial("accept", "status", "plan.yaml")
    assert done.code == 3, done.said
    assert f"{FT}: the plan has no component ft any more" in done.out
    assert place.seatrial("accept", "status", "plan.yaml", "--component", "runs").code == 0
    report = place.seatrial("report", "plan.yaml", "-o", "-", "--format", "md")
    assert f"{FT}: the plan has no component ft any more" in report.out
    path.write_text(yaml.safe_dump({**plan, "plan": "p-other"}))
    assert "any more" not in place.seatrial("accept", "status", "plan.yaml").said


def test_the_report_of_a_checklist_says_when_its_last_item_got_a_result(place: Workplace) -> None:
    write(place)
    assert place.seatrial("accept", "plan.yaml", "-q").code == 3

    def of_report() -> dict[str, Any]:
        done = place.seatrial("report", "plan.yaml", "-o", "-", "--format", "json")
        parts = {one["tag"]: one for one in json.loads(done.out)["components"]}
        return dict(parts[FT])

    for item in ("1", "ups"):
        assert tick(place, item, "--pass").code == 0
    assert of_report()["ended"] is None
    assert tick(place, "cooling", "--value", "20").code == 0
    found = of_report()
    assert found["begun"] < found["ended"]
