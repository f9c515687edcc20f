from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from seatrial.journal.events import Event, ScriptEnded, ScriptStarted
from seatrial.judge.statistics.outliers import Suspect, Suspects
from seatrial.results.slow_places import NodeEvidence
from seatrial.show.page import Section
from seatrial.show.text import section_text
from seatrial.show.variability import suspects_parts
from tests.programs import Workplace
from tests.results.store.trials import TrialMaker, a_case


def said(found: Suspects, evidence: NodeEvidence) -> list[str]:
    return section_text(Section("", [*suspects_parts(found, evidence)])).splitlines()


def test_runs_that_are_left_out_are_told_with_the_count() -> None:
    evidence = NodeEvidence([], [], {"of broken@gcc, which never went well": 3})
    head, left_out = said(Suspects([], 12, 0, 0, 4, "nothing to compare with"), evidence)
    assert head.startswith("0 of 12 runs failed or were slow (3 runs more left out, as told below)")
    assert left_out == "left out: 3 runs: 3 of broken@gcc, which never went well"


def test_a_weak_p_is_explained() -> None:
    """An accused with p = 0.8 would else look like a mistake."""
    accused = [
        Suspect(["n017"], "node", 9, 9, 0.3, 1e-6),
        Suspect(["n099"], "node", 3, 3, 0.1, 0.8),
    ]
    sure, weak = said(Suspects(accused, 200, 40, 1, 6000), NodeEvidence([], [], {}))[1:]
    assert sure.endswith("p = 1e-06, corrected")
    assert "p = 0.8, corrected: chance by these runs alone" in weak


def test_facts_of_slow_nodes_and_nodes_that_failed_in_one_job_are_named(place: Workplace) -> None:
    given = ("--read", f"n[00-05]={place.folder}/old", "--read", f"n[06-23]={place.folder}/new")
    (place.folder / "old").write_text("node.firmware\t1.2\n")
    (place.folder / "new").write_text("node.firmware\t1.3\n")
    done = place.seatrial("facts", "collect", "-m", str(place.machine), *given, "--name", "f")
    assert done.code == 0, done.said
    case = a_case(1)
    trial = TrialMaker(place.trials, "t", [case, a_case(2, test="check")], machine="here")
    trial.start()
    for number in range(48):
        node = number % 24
        trial.run(case, f"r{number:03}")
        slow = int((7 if node < 6 else 0) * 1e7) + (number * 7919 % 10) * 10**6
        trial.events = [
            _moved(event, f"r{number:03}", f"n{node:02}", slow) for event in trial.events
        ]
    for number in range(6):
        trial.run(trial.cases[1], f"c{number}", figures={"failed_node{node=n07}": 1.0})
        trial.events = [_moved(event, f"c{number}", "n[00-23]", 0) for event in trial.events]
    trial.end()
    done = place.seatrial("suspects", "--machine", "here", "--json")
    found = json.loads(done.out)["here"]
    (fact,) = found["facts"]
    assert (fact["keys"], fact["nodes"]) == (["node.firmware"], "n[00-05]")
    assert fact["ratio"] == pytest.approx(1.07, abs=0.01)
    assert [each["names"] for each in found["suspects"]] == [["n07"]]
    done = place.seatrial("suspects", "--machine", "here")
    assert "runs on nodes with node.firmware '1.2' take 7 % longer" in done.out
    assert "6 of 24 nodes, n[00-05]; p = " in done.out


def _moved(event: Event, run: str, nodes: str, later: int) -> Event:
    """The event of a run on other nodes, whose script took longer by so many ns."""
    if isinstance(event, ScriptStarted) and event.run_id == run:
        return replace(event, nodes=nodes)
    if isinstance(event, ScriptEnded) and event.run_id == run:
        return replace(event, time=event.time + later)
    return event
