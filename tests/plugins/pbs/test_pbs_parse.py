"""What OpenPBS 23.06 answered, and what PBS does not answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from seatrial.execute.batch.scheduler_client import UnexpectedOutput
from seatrial.plugins.pbs.client import (
    TEMPORARY,
    UNKNOWN,
    ArrayCounts,
    ServerSettings,
    first_words,
    nodes_of,
    parse_counts,
    parse_job_id,
    parse_pbsnodes,
    parse_qselect,
    parse_qstat,
    parse_server,
)

DATA = Path(__file__).parent / "data"


def captured(name: str) -> str:
    return (DATA / f"pbs-{name}.json").read_text()


def answer(**about: Any) -> str:
    return json.dumps({"pbs_version": "23.06.06", "Jobs": {"7[2].pbs": about}})


def test_running_jobs() -> None:
    tasks = parse_qstat(captured("qstat-running"))
    assert {(each.array, each.task): (each.state, each.nodes) for each in tasks} == {
        **{(0, i): ("RUNNING", "n001" if i < 5 else "n002") for i in range(1, 7)},
        (1, 0): ("RUNNING", "n[002-003]"),
        (2, 0): ("RUNNING", "n003"),
        (3, 0): ("PENDING", ""),
    }


def test_finished_jobs() -> None:
    tasks = {(each.array, each.task): each for each in parse_qstat(captured("qstat-finished"))}
    assert all(tasks[0, i].state == "FAILED" and tasks[0, i].exit_code == 3 for i in range(1, 7))
    assert (tasks[1, 0].state, tasks[1, 0].name) == ("FAILED", "two")
    assert (tasks[2, 0].state, tasks[2, 0].exit_code) == ("TIMEOUT", 0)


@pytest.mark.parametrize(
    ("about", "state", "exit_code"),
    [
        ({"job_state": "F", "substate": 92, "Exit_status": 0}, "COMPLETED", 0),
        ({"job_state": "X", "substate": 93, "Exit_status": 265, "run_count": 1}, "FAILED", 137),
        ({"job_state": "X", "substate": 93, "Exit_status": "3"}, "FAILED", 3),
        ({"job_state": "X", "substate": 93, "Exit_status": 93, "run_count": 2}, "REQUEUED", 93),
        ({"job_state": "X", "substate": 93, "Exit_status": 93, "run_count": 1}, "FAILED", 93),
        ({"job_state": "F", "substate": 91}, "CANCELLED", 0),
        ({"job_state": "F", "substate": 93, "Exit_status": -27}, "OUT_OF_MEMORY", 0),
        ({"job_state": "F", "substate": 93, "Exit_status": -4}, "NODE_FAIL", 0),
        ({"job_state": "F", "substate": 93, "Exit_status": -99}, "LAUNCH_FAILED", 0),
        ({"job_state": "F", "substate": 93, "Exit_status": -11}, "REQUEUED", 0),
        ({"job_state": "F", "substate": 93, "Exit_status": -19}, "CANCELLED", 0),
        ({"job_state": "F", "substate": 93, "Exit_status": -28}, "TIMEOUT", 0),
        ({"job_state": "F", "substate": 93, "Exit_status": "271"}, "FAILED", 143),
        *(({"job_state": state}, "PENDING", 0) for state in "QHWTM"),
        ({"job_state": "U", "substate": 45}, "SUSPENDED", 0),
        ({"job_state": "E", "substate": 53, "Exit_status": 1}, "COMPLETING", 0),
        ({"job_state": "S", "substate": 43}, "SUSPENDED", 0),
    ],
)
def test_states(about: dict[str, Any], state: str, exit_code: int) -> None:
    [task] = parse_qstat(answer(Job_Name="seatrial-x", **about))
    assert (task.key, task.state, task.exit_code) == (("seatrial-x", 7, 2), state, exit_code)


def test_who_deleted_a_job() -> None:
    comment = "Job run at Tue Nov 24 at 15:33 on (n001:ncpus=1) and terminated by ann@login1"
    [task] = parse_qstat(answer(job_state="F", substate=91, Exit_status=271, comment=comment))
    assert (task.state, task.by) == ("CANCELLED", "ann@login1")


def test_a_release_of_pbs_pro_that_writes_values_as_they_are() -> None:
    """Made by hand, after the reference guide of PBS Professional 2021.1: texts with quotes, a
    backslash and a line feed; a number with a zero before it."""
    text = captured("pro-qstat")
    with pytest.raises(ValueError, match="escape"):
        json.loads(text, strict=False)
    assert parse_counts(text) == ArrayCounts("B Queued:1 Running:1 Exiting:0 Expired:2", 2)
    tasks = {each.task: each for each in parse_qstat(text)}
    assert {number: (task.state, task.exit_code) for number, task in tasks.items()} == {
        0: ("COMPLETED", 0),
        1: ("FAILED", 143),
        2: ("RUNNING", 0),
        3: ("PENDING", 0),
    }
    assert tasks[2].nodes == "x[1000-1001]c0s0b0n0"
    assert {task.name for task in tasks.values()} == {"seatrial-q1"}


def test_counts_of_an_array() -> None:
    counts = parse_counts(captured("qstat-running"))
    assert counts == ArrayCounts("B Queued:0 Running:6 Exiting:0 Expired:0", 6)
    assert parse_counts(captured("qstat-finished")).over
    assert parse_counts(answer(job_state="R")) == ArrayCounts()  # of a task, and of a plain job


NONSENSE = [
    "",
    "<html><body>502 Bad Gateway</body></html>",
    "null",
    "[]",
    '{"a": 1}',
    '{"pbs_version": 1, "Jobs": [], "nodes": [], "Server": []}',
    '{"pbs_version": 1, "Jobs": {"7.pbs": 3}, "nodes": {"n1": 3}, "Server": {"s": 3}}',
    '{"pbs_version": 1, "Jobs": {"7.pbs": {}}, "nodes": {"n1": {}}}',
    '{"pbs_version": 1, "Jobs": {"7.pbs": {"job_state": "?"}}, "nodes": {"n1": {"state": 1}}}',
    '{"pbs_version": 1, "Jobs": {"x": {"job_state": "R"}}, "nodes": {"n1": {"state": ""}}}',
    "[" * 100_000,
]


@pytest.mark.parametrize("text", NONSENSE, ids=range(len(NONSENSE)))
def test_nonsense_is_no_answer(text: str) -> None:
    for parse in (parse_qstat, parse_pbsnodes, parse_server):
        with pytest.raises(UnexpectedOutput, match="answered"):
            parse(text)


def test_an_answer_that_is_cut_is_no_answer() -> None:
    text = captured("qstat-running")
    with pytest.raises(UnexpectedOutput, match="no JSON"):
        parse_qstat(text[: len(text) // 2])


def test_control_characters_in_texts_are_read() -> None:
    text = answer(job_state="Q", Job_Name="seatrial-x").replace("seatrial", "sea\ttrial")
    assert parse_qstat(text)[0].name == "sea\ttrial-x"


def test_no_jobs() -> None:
    assert parse_qstat('{"timestamp": 1, "pbs_version": "23.06.06", "pbs_server": "pbs"}') == []


def test_nodes() -> None:
    found = parse_pbsnodes(captured("pbsnodes"))
    assert found == dict.fromkeys(["pbs", *(f"n00{i}" for i in range(1, 9))], "")


@pytest.mark.parametrize(
    ("state", "comment", "why"),
    [
        ("job-busy", "", ""),
        ("resv-exclusive", "", ""),
        ("offline", "fans", "offline: fans"),
        ("state-unknown,down", "", "state-unknown,down"),
        ("job-sharing,busy", "", ""),
        ("sleep", "", ""),
        ("job-busy,Stale", "", "job-busy,Stale"),
        ("frozen", "of a later PBS", "frozen: of a later PBS"),
    ],
)
def test_nodes_that_take_no_jobs(state: str, comment: str, why: str) -> None:
    about = {"state": state, **({"comment": comment} if comment else {})}
    nodes = {"n1": {"state": "free"}, "n2[0]": {"state": "free"}, "n2[1]": about}
    text = json.dumps({"pbs_version": "2", "nodes": nodes})
    assert parse_pbsnodes(text) == {"n1": "", "n2": why}


def test_the_server() -> None:
    about = {"max_array_size": 500, "job_history_enable": "True"}
    said = {"pbs_version": "23", "Server": {"pbs": about}}
    assert parse_server(json.dumps(said)) == ServerSettings(500, True)
    del about["job_history_enable"]
    assert parse_server(json.dumps(said)) == ServerSettings(500, False)


@pytest.mark.parametrize(
    ("version", "direct"),
    [("23.06.06", True), ("2021.1.3.20220217", True), ("14.2.4", False), ("", False), (7, False)],
)
def test_which_releases_let_jobs_write_directly(version: object, direct: bool) -> None:
    said = {"pbs_version": "x", "Server": {"pbs": {"pbs_version": version}}}
    assert parse_server(json.dumps(said)).writes_directly is direct


@pytest.mark.parametrize(
    ("text", "job_id"),
    [
        ("12.pbs\n", 12),
        ("0[].pbs\n", 0),
        ("note\n12[].a.b.c\n", 12),
        ("qsub: no\n", None),
        ("", None),
    ],
)
def test_job_ids(text: str, job_id: int | None) -> None:
    assert parse_job_id(text) == job_id


def test_names_are_found() -> None:
    assert parse_qselect("0[].pbs\n5.pbs\n") == [0, 5]
    with pytest.raises(UnexpectedOutput):
        parse_qselect("<html>")


@pytest.mark.parametrize(
    ("vnodes", "nodes"),
    [
        ("", ""),
        ("(n001:ncpus=1)", "n001"),
        ("(n1[0]:ncpus=2+n1[1]:ncpus=2)+(n2[0]:ncpus=4:mem=1kb)", "n[1-2]"),
    ],
)
def test_nodes_of_a_job(vnodes: str, nodes: str) -> None:
    assert nodes_of(vnodes) == nodes


@pytest.mark.parametrize(
    "said",
    [
        "Connection refused\nqsub: cannot connect to server pbs (errno=15010)",
        "Communication failure.\nqsub: cannot connect to server pbs (errno=15031)",
        "qsub: would exceed queue workq's per-user limit of jobs in 'Q' state",
    ],
)
def test_errors_that_pass(said: str) -> None:
    assert TEMPORARY.search(said)


@pytest.mark.parametrize(
    "said", ["qsub: Unknown queue", "qsub: Unknown resource: nores", "qsub: illegal -J value"]
)
def test_errors_that_stay(said: str) -> None:
    assert not TEMPORARY.search(said)


def test_words_of_errors() -> None:
    assert first_words("qsub: illegal -J value\nusage: qsub [-a date]\n") == "illegal -J value"
    assert first_words("") == "no message"
    assert UNKNOWN.search("qstat: Unknown Job Id 9.pbs")
