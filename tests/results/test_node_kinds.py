"""Studies of runs that were on nodes that differ say so."""

from __future__ import annotations

from pathlib import Path

from seatrial.journal.events import (
    MetricRecorded,
    RunCreated,
    RunJudged,
    ScriptEnded,
    ScriptStarted,
)
from seatrial.model.machine import Machine, NodeGroup
from tests.cli.test_query_common import ask
from tests.results.store.trials import TrialMaker
from tests.show.web.frost import describe

from .figures import TIME, bound

MIXED = Machine(
    machine="frontier",
    scheduler="slurm",
    nodes=[NodeGroup(names="n[001-004]", cores=2), NodeGroup(names="n[005-006]", cores=4)],
)


def ran_on(folder: Path, tag: str, *nodes: str) -> None:
    """A trial of two cases; the second has a run on each of these sets of nodes."""
    cases = [bound(1, way="one"), bound(2, way="other")]
    trial = TrialMaker(folder, tag, cases)
    describe(trial, MIXED)
    trial.start()
    for number, (case, where) in enumerate([(cases[0], "n001"), *((cases[1], n) for n in nodes)]):
        of = {"app": "a", "test": case.test, "case": case.id, "run_id": f"r{number}{tag}"}
        trial.event(RunCreated, path="", **of)
        trial.event(ScriptStarted, nodes=where, **of)
        trial.event(ScriptEnded, exit_code=0, **of)
        name, unit, better = TIME
        trial.event(MetricRecorded, metric=name, value=1.0, unit=unit, better=better, **of)
        trial.event(RunJudged, code=0, verdict="pass", **of)
    trial.end()


def test_runs_over_both_kinds_and_on_either_are_told(tmp_path: Path) -> None:
    ran_on(tmp_path, "spread", "n[004-005]")
    ran_on(tmp_path, "either", "n001", "n006")
    ran_on(tmp_path, "alike", "n001", "n[002-003]")
    words = "nodes that differ (n[001-004]: 2 cores in 1 NUMA domain; n[005-006]: 4 cores in 1"
    assert f"spread: 1 run was spread over {words}" in ask(tmp_path, "best", "spread").err
    said = ask(tmp_path, "ratio", "either", "--of", "way=one,other", "--x", "nodes")
    assert f"either: 1 case ran on one or the other of {words}" in said.err
    compared = ask(tmp_path, "compare", "spread", "alike").out
    assert f"note: spread: 1 run was spread over {words}" in compared
    assert "nodes that differ" not in ask(tmp_path, "best", "alike").err
