from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from seatrial.journal.events import MetricRecorded
from seatrial.judge.learning import learn
from seatrial.model import codes
from seatrial.model.test import Case
from seatrial.results.references import Learning, learn_from
from seatrial.results.store import queries
from seatrial.results.store.ingest import synced
from tests.results.store.trials import TrialMaker, a_case


def learned(folder: Path, trial: TrialMaker) -> Learning:
    trial.write()
    with synced(folder / "store.sqlite", folder) as store:
        return learn_from(store, [queries.trial(store, trial.tag)])


def on_node(number: int) -> Case:
    same: dict[str, Any] = {"parameters": {"touch": "all"}, "threads": 2}
    return a_case(number, node=f"n{number:03}", **same)


def test_the_figures_of_all_nodes_make_one_reference(tmp_path: Path) -> None:
    trial = TrialMaker(tmp_path, "nodes", [on_node(n) for n in range(1, 7)])
    figures = [100.0, 104.0, 98.0, 101.0, 97.0]
    for case, figure in zip(trial.cases, figures, strict=False):
        trial.run(case, f"r{case.node}", figures={"triad": figure})
    trial.run(trial.cases[5], "wrong", codes.WRONG_ANSWER, figures={"triad": 5.0})
    learning = learned(tmp_path, trial)
    (reference,) = learning.references
    assert reference.learned is not None and reference.learned.runs == 5
    assert (reference.value, reference.lower, reference.upper) == learn(figures, "higher")
    assert learning.left_out == []


def test_what_gives_no_reference_is_named_without_a_node(tmp_path: Path) -> None:
    trial = TrialMaker(tmp_path, "nodes", [on_node(1), on_node(2)])
    trial.run(trial.cases[0], "wrong", codes.FAILED, figures={"triad": 5.0})
    what = "stream{touch=all}@gcc triad"
    assert learned(tmp_path, trial) == ([], [(what, "no run of it gave a right answer")], [], [])


@pytest.mark.parametrize("change", [{"unit": "GB/s"}, {"better": "lower"}])
def test_figures_that_differ_in_kind_are_not_pooled(tmp_path: Path, change: dict[str, str]) -> None:
    trial = TrialMaker(tmp_path, "mixed", [on_node(1), on_node(2)])
    for case in trial.cases:
        trial.run(case, f"r{case.node}", figures={"triad": 5.0})
    kind = {"unit": "MB/s", "better": "higher"} | change
    of = {"test": "stream", "case": trial.cases[0].id, "run_id": "rn001"}
    trial.event(MetricRecorded, metric="triad", value=5.0, **kind, **of)
    learning = learned(tmp_path, trial)
    assert learning.references == []
    units, directions = (
        "units differ: GB/s and MB/s",
        "directions differ: higher is better and lower",
    )
    differ = units if "unit" in change else f"{directions} is better"
    assert learning.left_out[0][1] == f"of its figures the {differ}"


def test_figures_of_trials_that_are_not_named_are_left_out(tmp_path: Path) -> None:
    for tag, figure in (("one", 100.0), ("two", 102.0), ("other", 5.0)):
        trial = TrialMaker(tmp_path, tag, [on_node(1)])
        for number in range(3):
            trial.run(trial.cases[0], f"{tag}{number}", figures={"triad": figure})
        trial.write()
    with synced(tmp_path / "store.sqlite", tmp_path) as store:
        named = [queries.trial(store, tag) for tag in ("one", "two")]
        (reference,) = learn_from(store, named).references
    assert reference.learned is not None and reference.learned.runs == 6
    assert reference.value == 101.0
