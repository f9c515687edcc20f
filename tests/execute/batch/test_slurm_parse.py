from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.execute.batch.scheduler_client import ACTIVE, ENDED, TaskState, UnexpectedOutput
from seatrial.execute.batch.slurm import (
    NO_JOB,
    TEMPORARY,
    first_words_of,
    parse_job,
    parse_job_id,
    parse_sacct,
    parse_squeue,
)
from seatrial.model.codes import CODES, PENDING

# What a real Slurm 22.05 answered (tests/slurm/cluster.py): exit 0, exit 3, SIGKILL, SIGTERM,
# SIGSEGV, scancel, tasks that wait and run, a job that is no array, an output that could not be
# opened, the last waiting tasks of two arrays, cancelled by their task ids.
SQUEUE = """\
1|5|seatrial-x|CANCELLED|15|n002|
1|0|seatrial-x|COMPLETED|0|n001|
1|1|seatrial-x|FAILED|768|n001|
1|2|seatrial-x|FAILED|9|n001|
1|3|seatrial-x|FAILED|15|n001|
1|4|seatrial-x|FAILED|11|n002|
7|1|seatrial-y|PENDING|0||
10|N/A|plain|PENDING|0||
7|0|seatrial-y|RUNNING|0|n002|
2|32|seatrial-z|FAILED|4021|n001|
8|N/A|seatrial-v|CANCELLED|0||
9|N/A|plain|CANCELLED|0||
"""

SACCT = """\
1_0|seatrial-x|COMPLETED|0:0|n001
1_1|seatrial-x|FAILED|3:0|n001
1_2|seatrial-x|FAILED|0:9|n001
1_5|seatrial-x|CANCELLED by 0|0:0|n002
43|allocation|FAILED|0:53|n001
7_[1-4%1]|seatrial-y|PENDING|0:0|None assigned
7_0|seatrial-y|RUNNING|0:0|n[001-002]
8|seatrial-v|CANCELLED by 0|0:0|None assigned
"""

# squeue(1), JOB STATE CODES, of Slurm 22.05; then what later versions added.
STATES = [
    *("BOOT_FAIL", "CANCELLED", "COMPLETED", "CONFIGURING", "COMPLETING", "DEADLINE", "FAILED"),
    *("NODE_FAIL", "OUT_OF_MEMORY", "PENDING", "PREEMPTED", "RUNNING", "RESV_DEL_HOLD"),
    *("REQUEUE_FED", "REQUEUE_HOLD", "REQUEUED", "RESIZING", "REVOKED", "SIGNALING"),
    *("SPECIAL_EXIT", "STAGE_OUT", "STOPPED", "SUSPENDED", "TIMEOUT"),
    *("EXPEDITING", "LAUNCH_FAILED", "POWER_UP_NODE", "RECONFIG_FAIL", "UPDATE_DB"),
]

SENTENCES = [
    # (what sbatch said, whether it may pass)
    ("Batch job submission failed: Unable to contact slurm controller (connect failure)", True),
    ("Batch job submission failed: Socket timed out on send/recv operation", True),
    ("Batch job submission failed: Zero Bytes were transmitted or received", True),
    ("Slurm temporarily unable to accept job, sleeping and retrying", True),
    ("QOSMaxSubmitJobPerUserLimit\nsbatch: error: Batch job submission failed: Job violates "
     "accounting/QOS policy (job submit limit, user's size and/or time limits)", True),
    ("AssocGrpSubmitJobsLimit\nsbatch: error: Batch job submission failed: Job violates ...", True),
    ("Batch job submission failed: Protocol authentication error", True),
    ("Batch job submission failed: I/O error writing script/environment to file", True),
    ("resolve_ctls_from_dns_srv: res_nsearch error: Unknown host\nsbatch: error: fetch_config: DNS "
     "SRV lookup failed\nsbatch: fatal: Could not establish a configuration source", True),
    ("ClusterName needs to be specified\nsbatch: fatal: Unable to process configuration file",
     True),
    ("Batch job submission failed: Requested node configuration is not available", False),
    ("invalid partition specified: nope\nsbatch: error: Batch job submission failed: "
     "Invalid partition name specified", False),
    ("Batch job submission failed: Invalid node name specified", False),
    ("Batch job submission failed: Requested reservation is invalid", False),
    ("Batch job submission failed: Invalid feature specification", False),
    ("Invalid --time specification", False),
    ("Batch job submission failed: Invalid job array specification", False),
    ("Batch job submission failed: Invalid account or account/partition combination", False),
    ("Batch job submission failed: Requested time limit is invalid (missing or exceeds some limit)",
     False),
    ("unrecognized option '--bogus'\nTry \"sbatch --help\" for more information", False),
]  # fmt: skip


def test_squeue_as_it_really_answers() -> None:
    assert parse_squeue(SQUEUE) == [
        TaskState(1, 5, "seatrial-x", "CANCELLED", 143, "n002"),
        TaskState(1, 0, "seatrial-x", "COMPLETED", 0, "n001"),
        TaskState(1, 1, "seatrial-x", "FAILED", 3, "n001"),
        TaskState(1, 2, "seatrial-x", "FAILED", 137, "n001"),
        TaskState(1, 3, "seatrial-x", "FAILED", 143, "n001"),
        TaskState(1, 4, "seatrial-x", "FAILED", 139, "n002"),
        TaskState(7, 1, "seatrial-y", "PENDING", 0, ""),
        TaskState(7, 0, "seatrial-y", "RUNNING", 0, "n002"),
        TaskState(2, 32, "seatrial-z", "FAILED", 181, "n001"),
        TaskState(8, None, "seatrial-v", "CANCELLED", 0, ""),
    ]
    assert parse_squeue("") == []
    assert parse_squeue("CLUSTER: emu\n1|0|seatrial-a|RUNNING|0|n1|\n") == [
        TaskState(1, 0, "seatrial-a", "RUNNING", 0, "n1")
    ]


def test_of_a_job_that_completes_the_controller_does_not_name_all_nodes() -> None:
    """It names those that have not finished: n001 of n[001-002], as a real Slurm 22.05 did."""
    (state,) = parse_squeue("1|0|seatrial-x|COMPLETING|0|n001|\n")
    assert (state.active, state.nodes) == (True, "")
    said = "ArrayJobId=1 ArrayTaskId=0 JobName=seatrial-x JobState=%s ExitCode=0:0 NodeList=n001\n"
    assert parse_job(said % "COMPLETING").nodes == ""
    assert parse_job(said % "RUNNING").nodes == "n001"


def test_sacct_as_it_really_answers() -> None:
    assert parse_sacct(SACCT) == [
        TaskState(1, 0, "seatrial-x", "COMPLETED", 0, "n001"),
        TaskState(1, 1, "seatrial-x", "FAILED", 3, "n001"),
        TaskState(1, 2, "seatrial-x", "FAILED", 137, "n001"),
        TaskState(1, 5, "seatrial-x", "CANCELLED", 0, "n002", "root"),
        TaskState(7, 0, "seatrial-y", "RUNNING", 0, "n[001-002]"),
        TaskState(8, None, "seatrial-v", "CANCELLED", 0, "", "root"),
    ]
    (nobody,) = parse_sacct("8|seatrial-v|CANCELLED by 4000000123|0:0|n1\n")
    assert (nobody.state, nobody.by) == ("CANCELLED", "4000000123")
    assert parse_sacct("") == []


def test_scontrol_as_it_really_answers() -> None:
    said = (
        "JobId=14 ArrayJobId=12 ArrayTaskId=1 JobName=seatrial-x UserId=root(0) JobState=FAILED "
        "Reason=None ExitCode=0:9 ReqNodeList=(null) NodeList=n002 BatchHost=n002 Power= \n"
    )
    assert parse_job(said) == TaskState(12, 1, "seatrial-x", "FAILED", 137, "n002")
    waits = said.replace("FAILED", "PENDING").replace("=n002", "=(null)").replace("0:9", "0:0")
    assert parse_job(waits) == TaskState(12, 1, "seatrial-x", "PENDING", 0, "")
    for nonsense in ("", said.replace("FAILED", "DANCING"), said.replace("ArrayTaskId=1 ", "")):
        with pytest.raises(UnexpectedOutput, match="scontrol answered "):
            parse_job(nonsense)
    assert NO_JOB.search("slurm_load_jobs error: Invalid job id specified")
    assert NO_JOB.search("Job 1_99 not found")
    assert not NO_JOB.search("slurm_load_jobs error: Unable to contact slurm controller")


def test_jobs_of_the_same_user_may_have_any_name() -> None:
    own = "4|2|my | own|x|TIMEOUT|0|n1|\n5|N/A||RUNNING|0|n1|\n6|0|other|DANCING|0|n1|\n"
    assert parse_squeue(own) == []  # and any state
    (mine,) = parse_squeue(own + "7|2|seatrial-a|b|TIMEOUT|0|n1|\n")
    assert mine == TaskState(7, 2, "seatrial-a|b", "TIMEOUT", 0, "n1")
    (mine,) = parse_sacct("4_2|my|own|TIMEOUT|0:0|n1\n")
    assert mine == TaskState(4, 2, "my|own", "TIMEOUT", 0, "n1")


@pytest.mark.parametrize("state", STATES)
def test_every_state_of_squeue_is_known_and_either_goes_on_or_has_a_code(state: str) -> None:
    (task,) = parse_squeue(f"1|0|seatrial-a|{state}|0|n1|\n")
    assert task.active is (state in ACTIVE) is (state not in ENDED)
    if not task.active and state not in ("COMPLETED", "FAILED"):
        code = ENDED[state]
        assert code in CODES
        assert code not in (0, PENDING.number)


def test_no_state_is_known_that_slurm_has_not() -> None:
    assert set(STATES) == ENDED.keys() | ACTIVE
    assert not ENDED.keys() & ACTIVE


@pytest.mark.parametrize(
    "line",
    [
        "slurm_load_jobs error: Unable to contact slurm controller",
        "1|0|seatrial-a|DANCING|0|n1|",
        "1|0|seatrial-a|RUNNING|0|n1",  # cut short
        "1|0|a|RUN",
        "²|0|a|RUNNING|0|n1|",  # a digit to Python, no number to int()
        "9" * 5000 + "|0|a|RUNNING|0|n1|",
        "|0|a|RUNNING|0|n1|",
        "<html>502 Bad Gateway</html>",
        "\0",
    ],
)
def test_what_is_no_answer_of_squeue_is_nonsense(line: str) -> None:
    with pytest.raises(UnexpectedOutput, match="squeue answered "):
        parse_squeue(f"1|0|a|RUNNING|0|n1|\n{line}\n")


@pytest.mark.parametrize(
    "line", ["", "1_0|a|DANCING|0:0|n1", "1_0|a|FAILED|0:0", "1_0|a||0:0|n1", "sacct: error: x"]
)
def test_what_is_no_answer_of_sacct_is_nonsense(line: str) -> None:
    with pytest.raises(UnexpectedOutput, match="sacct answered "):
        parse_sacct(f"1_0|a|FAILED|0:0|n1\n{line}\n")


pieces = st.sampled_from(
    ["1", "²", "N/A", "RUNNING", "FAILED", "", "0:9", "9" * 50, "n1", "CANCELLED by 1"]
)
answers = st.text() | st.lists(
    st.lists(pieces | st.text(max_size=3), max_size=9).map("|".join)
).map("\n".join)


@given(answers)
def test_any_text_is_an_answer_or_nonsense(text: str) -> None:
    for parse in (parse_squeue, parse_sacct):
        try:
            tasks = parse(text)
        except UnexpectedOutput as error:
            assert len(str(error)) < 500
        else:
            assert all(task.state in ENDED or task.state in ACTIVE for task in tasks)
            assert all(task.exit_code >= 0 for task in tasks)
    found = parse_job_id(text)
    assert found is None or found >= 0
    assert 0 < len(first_words_of(text)) <= 300


task_states = st.builds(
    TaskState,
    st.integers(0, 10**9),
    st.integers(0, 10**6),
    st.text("ab|-", min_size=1, max_size=8),
    st.sampled_from(STATES),
    st.integers(0, 127),
    st.sampled_from(["", "n1", "n[1-3,7]"]),
    st.just(""),
)


@given(st.lists(task_states))
def test_what_slurm_prints_is_what_is_read(tasks: list[TaskState]) -> None:
    tasks = [task._replace(name=f"seatrial-{task.name}") for task in tasks]
    queue = [f"{t.array}|{t.task}|{t.name}|{t.state}|{t.exit_code << 8}|{t.nodes}|" for t in tasks]
    shown = [t._replace(nodes="") if t.state == "COMPLETING" else t for t in tasks]
    assert parse_squeue("\n".join(queue)) == shown
    book = [f"{t.array}_{t.task}|{t.name}|{t.state}|{t.exit_code}:0|{t.nodes}" for t in tasks]
    assert parse_sacct("\n".join(book)) == tasks


@pytest.mark.parametrize(
    ("text", "job"),
    [
        ("12\n", 12),
        ("12;emu\n", 12),
        ("sbatch: warning: x\n12\n", 12),
        ("", None),
        ("Submitted batch job 12", None),
        ("²\n", None),
        ("9" * 30, None),
    ],
)
def test_the_job_id_of_sbatch(text: str, job: int | None) -> None:
    assert parse_job_id(text) == job


@pytest.mark.parametrize(("said", "passes"), SENTENCES)
def test_what_may_pass_is_tried_again_and_what_cannot_is_not(said: str, passes: bool) -> None:
    assert bool(TEMPORARY.search(f"sbatch: error: {said}\n")) is passes


def test_the_words_of_an_error_fit_on_a_line() -> None:
    said = "sbatch: error: invalid partition specified: nope\nsbatch: error: Batch job failed\n"
    assert first_words_of(said) == "invalid partition specified: nope Batch job failed"
    assert first_words_of(" \n") == "no message"
