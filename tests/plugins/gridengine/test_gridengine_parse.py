"""What Debian's Grid Engine 8.1.9 answered, and what Grid Engine does not answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from seatrial.execute.batch.scheduler_client import UnexpectedOutput
from seatrial.plugins.gridengine.client import (
    NO_ACCOUNT,
    TEMPORARY,
    UNKNOWN,
    CellSettings,
    first_words,
    parse_configuration,
    parse_job_id,
    parse_nodes,
    parse_qacct,
    parse_qstat,
)

DATA = Path(__file__).parent / "data"


def captured(name: str) -> str:
    return (DATA / f"gridengine-{name}").read_text()


def in_queue(letters: str, tasks: str = "2") -> str:
    """What qstat answers of one job."""
    return (
        "<job_info><job_info><job_list><JB_job_number>7</JB_job_number><JB_name>s</JB_name>"
        f"<state>{letters}</state><tasks>{tasks}</tasks></job_list></job_info></job_info>"
    )


def account(failed: str, code: str, took: str = "1s", category: str = "-l h_rt=60") -> str:
    """What qacct answers of one task."""
    fields = {
        "hostname": "n001.example.org",
        "jobname": "s",
        "jobnumber": "7",
        "taskid": "2",
        "start_time": "Fri Nov 27 22:22:25 2026",
        "granted_pe": "NONE",
        "failed": failed,
        "exit_status": code,
        "ru_wallclock": took,
        "category": category,
    }
    lines = (f"{name:<12} {value}\n" for name, value in fields.items())
    return f"{'=' * 62}\n{''.join(lines)}"


def test_jobs_in_the_queue() -> None:
    tasks = {(each.name, each.task): each for each in parse_qstat(captured("qstat.xml"))}
    assert {key: (each.state, each.nodes) for key, each in tasks.items()} == {
        ("seatrial-wide", 0): ("RUNNING", "n[001-002]"),
        ("seatrial-wide", 1): ("COMPLETING", "n[001-002]"),
        **{("seatrial-held", i): ("PENDING", "") for i in range(3)},
        **{("seatrial-error", i): ("LAUNCH_FAILED", "") for i in range(2)},
    }


def test_jobs_that_are_over() -> None:
    over = {each.key for each in parse_qstat(captured("qstat-over.xml"))}
    assert {("seatrial-held", 3, i) for i in range(3)} < over


def test_accounts() -> None:
    tasks = {(each.name, each.task): each for each in parse_qacct(captured("qacct.txt"))}
    assert {key: (each.state, each.exit_code) for key, each in tasks.items()} == {
        ("seatrial-wide", 1): ("CANCELLED", 137),
        ("seatrial-long", 0): ("TIMEOUT", 137),
        ("seatrial-error", 0): ("LAUNCH_FAILED", 0),
        ("seatrial-error", 1): ("LAUNCH_FAILED", 0),
        ("seatrial-plain", 0): ("FAILED", 3),
    }
    assert tasks["seatrial-wide", 1].nodes == "" and tasks["seatrial-plain", 0].nodes


@pytest.mark.parametrize(
    ("letters", "state"),
    [
        *((each, "PENDING") for each in ("qw", "hqw", "Rq", "hRwq")),
        *((each, "RUNNING") for each in ("r", "Rr", "hr")),
        *((each, "CONFIGURING") for each in ("t", "Rt")),
        *((each, "SUSPENDED") for each in ("s", "ts", "S", "tS", "T", "RtT")),
        *((each, "COMPLETING") for each in ("dr", "dt", "dRr", "ds")),
        *((each, "LAUNCH_FAILED") for each in ("Eqw", "Ehqw", "EhRqw")),
    ],
)
def test_letters_of_states(letters: str, state: str) -> None:
    [task] = parse_qstat(in_queue(letters))
    assert (task.key, task.state) == (("s", 7, 1), state)


def test_numbers_of_tasks() -> None:
    assert [each.task for each in parse_qstat(in_queue("z", "1-5:2,7"))] == [0, 2, 4, 6]


@pytest.mark.parametrize(
    ("told", "state"),
    [
        (account("0    ", "0"), "COMPLETED"),
        (account("0", "1"), "FAILED"),
        (account("0", "93"), "REQUEUED"),  # another job has claimed the run
        (account("100 : assumedly after job", "137   (Killed)"), "CANCELLED"),
        (account("100 : assumedly after job", "137   (Killed)", "60s"), "TIMEOUT"),
        (account("100 : assumedly after job", "139   (Segmentation fault)"), "FAILED"),
        (account("37  : qmaster enforced h_rt, h_cpu, or h_vmem limit", "137", "61s"), "TIMEOUT"),
        (account("37", "137", "3s", "-l h_rt=60,h_vmem=2G"), "OUT_OF_MEMORY"),
        (account("37", "137", "3s", "-l h_cpu=2,h_rt=60"), "TIMEOUT"),
        (account("19  : before writing exit_status", "0"), "NODE_FAIL"),
        (account("25  : rescheduling", "0"), "REQUEUED"),
        (account("26  : opening input/output file", "0"), "LAUNCH_FAILED"),
        (account("15  : in epilog", "0"), "COMPLETED"),
    ],
)
def test_ends(told: str, state: str) -> None:
    [task] = parse_qacct(told)
    assert (task.key, task.state, task.nodes) == (("s", 7, 1), state, "n001")


def test_the_last_account_of_a_task_counts() -> None:
    [task] = parse_qacct(account("25  : rescheduling", "0") + account("0", "0"))
    assert task.state == "COMPLETED"


NONSENSE = [
    "",
    "<html><body>502 Bad Gateway</body></html>",
    "<job_info",
    "{}",
    "<job_info><job_list><state>r</state></job_list></job_info>",
    in_queue("?"),
    in_queue("r", "x"),
    "<qhost><host/></qhost>",
    '<!DOCTYPE x [<!ENTITY a "b">]><job_info/>',
]


@pytest.mark.parametrize("text", NONSENSE, ids=range(len(NONSENSE)))
def test_nonsense_is_no_answer(text: str) -> None:
    for parse in (parse_qstat, parse_nodes, parse_configuration):
        with pytest.raises(UnexpectedOutput, match="answered"):
            parse(text)


@pytest.mark.parametrize("text", ["<html>", account("x", "0"), account("0", ""), "=====\n"])
def test_nonsense_is_no_account(text: str) -> None:
    with pytest.raises(UnexpectedOutput, match="qacct answered"):
        parse_qacct(text)


def test_an_answer_that_is_cut_is_no_answer() -> None:
    text = captured("qstat.xml")
    with pytest.raises(UnexpectedOutput, match="which Grid Engine does not"):
        parse_qstat(text[: len(text) // 2])


def test_no_jobs() -> None:
    assert parse_qstat("<job_info><queue_info/><job_info/></job_info>") == []
    assert parse_qacct("") == []


def test_nodes_that_take_no_jobs() -> None:
    names = [f"n00{i}" for i in range(1, 5)]
    assert parse_nodes(captured("qhost.xml")) == dict.fromkeys(names, "")
    assert parse_nodes(captured("qhost-down.xml")) == {
        **dict.fromkeys(names, ""),
        "n004": "all.q is u",
    }


@pytest.mark.parametrize(
    ("states", "why"),
    [
        (["", "d"], ""),
        (["a", "a"], ""),
        (["aASP"], ""),
        (["aZ"], "q0 is aZ"),
        (["E", "d"], "q0 is E, q1 is d"),
        ([], "it is in no queue"),
    ],
)
def test_a_node_takes_jobs_as_long_as_one_of_its_queues_does(states: list[str], why: str) -> None:
    values = (
        f"<queuevalue qname='q{i}' name='state_string'>{state}</queuevalue>"
        for i, state in enumerate(states)
    )
    assert parse_nodes(f"<qhost><host name='n1.x'>{''.join(values)}</host></qhost>") == {"n1": why}


def test_the_settings_of_a_cell() -> None:
    text = captured("qconf.txt")
    assert parse_configuration(text) == CellSettings(75_000, True, 0.0)
    later = text.replace("accounting_flush_time=00:00:00", "").replace("=00:00:15", "=00:01:30")
    assert parse_configuration(later).account_within == 90.0
    few = text.replace(" 75000", " 500").replace("accounting=true", "accounting=false")
    assert parse_configuration(few) == CellSettings(500, False, 0.0)
    assert parse_configuration(text.replace(" 75000", " 0")).largest_array == 75_000  # no limit


@pytest.mark.parametrize(
    ("text", "job_id"),
    [("12.1-3:1\n", 12), ("warning\n5\n", 5), ("Unable to run job: no\n", None), ("", None)],
)
def test_job_ids(text: str, job_id: int | None) -> None:
    assert parse_job_id(text) == job_id


@pytest.mark.parametrize(
    "said",
    [
        'unable to send message to qmaster using port 6444 on host "m": got send error',
        "error: commlib error: got select error (Connection refused)",
        "job rejected: Only 5 jobs are allowed per user (current job count: 5)",
    ],
)
def test_errors_that_pass(said: str) -> None:
    assert TEMPORARY.search(said)


@pytest.mark.parametrize(
    "said",
    [
        'Job was rejected because job requests unknown queue "nope"',
        'job rejected: the requested parallel environment "nope" does not exist',
        "job rejected: you tried to submit a job with more than 75000 tasks",
        'unknown resource "foo"',
    ],
)
def test_errors_that_stay(said: str) -> None:
    assert not TEMPORARY.search(said)


def test_words_of_errors() -> None:
    said = 'root has registered the job-array task 3.1 for deletion\ndenied: job "9" does not exist'
    assert first_words(said) == 'job "9" does not exist' and UNKNOWN.search(said)
    assert first_words("Unable to run job: no\nExiting.\n") == "Unable to run job: no"
    assert first_words("") == "no message"
    assert NO_ACCOUNT.search("error: job id 77 not found")
