"""A comparison tells which facts of nodes are not the same on both sides."""

from __future__ import annotations

import json

from tests.programs import Workplace


def test_compare_names_the_facts_that_changed_between_its_sides(place: Workplace) -> None:
    place.test("t", "echo 5")
    own = place.folder / "own"
    for number, kernel in enumerate(("5.1", "5.2")):
        own.write_text(f"node.kernel\t{kernel}\nnow.load\t{number}\n")
        words = ("-m", str(place.machine), "--read", f"n[1-3]={own}", "--name", f"f{number}")
        assert place.seatrial("facts", "collect", *words).code == 0
        assert place.run("--name", f"t{number}").code == 0
    done = place.seatrial("compare", "t0", "t1", "--format", "json")
    (compared,) = json.loads(done.out)["comparisons"]
    told = [each for each in compared["differences"] if each["subject"].startswith("nodes")]
    assert told == [
        {"subject": "nodes n[1-3]", "what": "node.kernel", "first": "5.1", "second": "5.2"}
    ]
    assert "nodes n[1-3]" in place.seatrial("compare", "t0", "t1").out
