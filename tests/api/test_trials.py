"""The examples of docs/how-to/python.md, run as they are written, and what they refuse."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

import seatrial
from seatrial.journal.events import Event
from seatrial.testing import SimulatedScheduler, a_case, a_machine
from tests.programs import Workplace

PAGE = Path(__file__).parents[2] / "docs/how-to/python.md"
RATE = {"triad": {"find": "^triad (\\S+)", "unit": "GB/s", "better": "higher"}}


@pytest.fixture
def site(place: Workplace, monkeypatch: pytest.MonkeyPatch) -> Workplace:
    place.local()
    place.test("stream", "echo triad 5.5", metrics=RATE)
    monkeypatch.chdir(place.folder)
    return place


def test_the_examples_of_the_page(site: Workplace, capsys: pytest.CaptureFixture[str]) -> None:
    for example in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)[1:]:
        exec(compile(example, str(PAGE), "exec"), {})
    told = capsys.readouterr().out
    assert "Counter({'pass': 2}) True" in told
    assert "TrialEnded" in told
    assert "no figure" in told
    assert "'node failure': 1" in told and "'pass': 1" in told


def test_faults_are_told_all_at_once(site: Workplace) -> None:
    (site.folder / "bad").mkdir()
    (site.folder / "bad/test.yaml").write_text("app: t\nrun: {nodes: x y}\nverify: [{}]\n")
    with pytest.raises(seatrial.InvalidFiles) as raised:
        seatrial.load_suite("bad")
    assert len(raised.value.faults) > 1
    with pytest.raises(seatrial.InvalidFiles):
        (site.folder / "plan.yaml").write_text("plan: p\ncomponents: [{component: c, kind: odd}]\n")
        seatrial.load_plan("plan.yaml")
    with pytest.raises(seatrial.UsageError, match="'repeats' is no option"):
        seatrial.Trial.create(["suite"], "machine.yaml", repeats=2)


def test_a_trial_is_resumed_where_it_was_left(site: Workplace) -> None:
    trial = seatrial.Trial.create(["suite"], "machine.yaml", name="one", repeat=2)
    seen: list[Event] = []
    outcome = trial.run(on_event=seen.append)
    assert outcome.verdicts == Counter({"pass": 2})
    assert seen == [*trial.events()]
    assert seatrial.Trial.open("one").resume().complete


def test_the_simulated_scheduler_ends_runs_as_it_is_told(site: Workplace) -> None:
    trial = seatrial.Trial.create(["suite"], "machine.yaml", name="ends", repeat=3)
    outcome = trial.run(scheduler=SimulatedScheduler(["OUT_OF_MEMORY", "COMPLETED", "TIMEOUT"]))
    assert outcome.verdicts == Counter({"out of memory": 1, "pass": 1, "timeout": 1})
    with pytest.raises(seatrial.UsageError, match="'BROKEN' is no end of a job"):
        SimulatedScheduler(["BROKEN"])


def test_machines_and_cases_of_tests() -> None:
    assert a_machine(cores=8).nodes[0].cores == 8
    assert a_case("cm4", nodes=2).nodes == 2
