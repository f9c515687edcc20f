"""What sinfo says of nodes, and what of it is news; jobs are kept off nodes by sbatch's line."""

from __future__ import annotations

from pathlib import Path

import pytest

from seatrial.execute.backends import Job, NodesDown, NodesUp, Submission
from seatrial.execute.batch.scheduler_client import UnexpectedOutput
from seatrial.execute.batch.slurm import parse_sinfo, sbatch_line
from seatrial.execute.batch.submitter import arrange, changes
from seatrial.model.machine import Machine, NodeGroup
from seatrial.model.schedulers import Slurm


@pytest.mark.parametrize(
    ("state", "why"),
    [
        ("idle|none", ""),
        ("idle*|none", ""),
        ("mixed|none", ""),
        ("allocated~|none", ""),
        ("maint|fans", ""),
        ("reserved|none", ""),
        ("down|none", "down"),
        ("down*|Not responding", "down: Not responding"),
        ("drained|bad | memory", "drained: bad | memory"),
        ("draining|fans", "draining: fans"),
        ("failing|none", "failing"),
        ("inval|Low RealMemory (reported:190000)", "inval: Low RealMemory (reported:190000)"),
        ("future|none", "future"),
        ("unknown*|none", ""),
        ("?|none", "?"),
        ("frozen|a state of a later Slurm", "frozen: a state of a later Slurm"),
    ],
)
def test_states_of_nodes(state: str, why: str) -> None:
    assert parse_sinfo(f"n001|{state}\n") == {"n001": why}


def test_nodes_that_take_jobs_by_themselves_are_up() -> None:
    states = [
        *("planned", "mixed-", "rebooting^", "reboot^", "reboot_requested", "reboot_issued@"),
        *("powering_down%", "powered_down~", "power_down!", "powering_up#", "power_up", "maint$"),
        *("blocked", "completing", "allocated+", "no_respond", "perfctrs", "dynamic_norm"),
    ]
    rows = "".join(f"n{i}|{state}|none\n" for i, state in enumerate(states))
    assert set(parse_sinfo(rows).values()) == {""}


def test_a_node_in_several_partitions_is_one() -> None:
    assert parse_sinfo("n1|down|x\nn2|idle|none\nn1|down|x\n") == {"n1": "down: x", "n2": ""}


@pytest.mark.parametrize("text", ["rubbish", "n1|", "n1|42|none", "|idle|none", "a|b c|d"])
def test_rubbish_is_no_answer(text: str) -> None:
    with pytest.raises(UnexpectedOutput):
        parse_sinfo(text)


def test_only_what_changed_is_news() -> None:
    now = {"n1": "", "n2": "down: x", "n3": "down: x", "n4": "drained", "n5": "", "n6": "down"}
    assert changes({"n1", "n6", "gone"}, now) == [
        NodesUp("n1"),
        NodesDown("n[2-3]", "down: x"),
        NodesDown("n4", "drained"),
    ]
    assert changes({"n1"}, {}) == []


def job(run_id: str, avoid: str = "", node: str = "") -> Job:
    return Job(run_id, Path(f"/runs/{run_id}"), 2, 2, 1, 1, 60.0, node, False, (), avoid)


def test_arrays_are_of_runs_that_avoid_the_same_nodes() -> None:
    jobs = [job("a"), job("b", "n1"), job("c"), job("d", "n1"), job("e", "n[1-2]")]
    groups = [[each.run_id for each in one.jobs] for one in arrange(jobs, 100)]
    assert groups == [["a", "c"], ["b", "d"], ["e"]]


@pytest.mark.parametrize(
    ("nodelist", "avoid", "node", "expected"),
    [
        ("", "n[1-2]", "", ["--exclude=n[1-2]"]),
        ("n[1-3]", "n2", "", ["--exclude=n[2,4]"]),
        ("n[1-3]", "", "", ["--exclude=n4"]),
        ("", "n1", "n1", ["--nodelist=n1"]),
        ("", "", "", []),
    ],
)
def test_nodes_to_avoid_are_excluded(
    nodelist: str, avoid: str, node: str, expected: list[str]
) -> None:
    machine = Machine(
        machine="m",
        scheduler="slurm",
        nodes=[NodeGroup(names="n[1-4]", cores=4)],
        slurm=Slurm(nodelist=nodelist),
    )
    submission = Submission("s", (job("a", avoid, node),))
    line = sbatch_line(Path("/s"), submission, machine)
    assert [w for w in line if w.startswith(("--exclude=", "--nodelist="))] == expected
