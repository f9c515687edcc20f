"""The registry of event names and verdict codes. Names and numbers up to 23 are those of the OLCF
Test Harness, so that dashboards made for it keep working; ``docs/events.md`` tells each."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Name(StrEnum):
    """What happened."""

    LOGGING_START = "logging_start"
    BUILD_START = "build_start"
    BUILD_END = "build_end"
    SUBMIT_START = "submit_start"
    SUBMIT_END = "submit_end"
    JOB_QUEUED = "job_queued"
    JOB_START = "job_start"
    BINARY_EXECUTE_START = "binary_execute_start"
    BINARY_EXECUTE_END = "binary_execute_end"
    CHECK_START = "check_start"
    CHECK_END = "check_end"
    JOB_END = "job_end"
    METRIC = "metric"
    TRIAL_START = "trial_start"
    TRIAL_RESUME = "trial_resume"
    TRIAL_PAUSE = "trial_pause"
    TRIAL_CANCEL = "trial_cancel"
    TRIAL_END = "trial_end"
    TRIAL_EXTEND = "trial_extend"
    TRIAL_ABANDON = "trial_abandon"
    ALERT = "alert"
    NODE_DOWN = "node_down"
    NODE_UP = "node_up"
    NODE_EXCLUDE = "node_exclude"
    NODE_ADMIT = "node_admit"
    TEST_STOP = "test_stop"
    TEST_ADMIT = "test_admit"
    GAUGE = "gauge"
    OUTPUT_QUIET = "output_quiet"


EVENT_NUMBERS: dict[Name, int] = {
    Name.LOGGING_START: 110,
    Name.BUILD_START: 120,
    Name.BUILD_END: 130,
    Name.SUBMIT_START: 140,
    Name.SUBMIT_END: 150,
    Name.JOB_QUEUED: 160,
    Name.JOB_START: 165,
    Name.OUTPUT_QUIET: 168,
    Name.BINARY_EXECUTE_START: 170,
    Name.BINARY_EXECUTE_END: 180,
    Name.JOB_END: 185,
    Name.CHECK_START: 190,
    Name.METRIC: 195,
    Name.CHECK_END: 200,
    Name.TRIAL_START: 300,
    Name.TRIAL_RESUME: 310,
    Name.TRIAL_PAUSE: 320,
    Name.TRIAL_CANCEL: 330,
    Name.TRIAL_END: 340,
    Name.TRIAL_EXTEND: 342,
    Name.TRIAL_ABANDON: 344,
    Name.ALERT: 350,
    Name.NODE_DOWN: 360,
    Name.NODE_UP: 362,
    Name.NODE_EXCLUDE: 364,
    Name.NODE_ADMIT: 366,
    Name.TEST_STOP: 370,
    Name.TEST_ADMIT: 372,
    Name.GAUGE: 380,
}

EVENT_MEANINGS: dict[Name, str] = {
    Name.LOGGING_START: "a run was made: its directory and scripts are being written",
    Name.BUILD_START: "a build is about to start (intent)",
    Name.BUILD_END: "a build ended; value: 0 good, 1 failed, 23 timed out; text: tail of its log",
    Name.SUBMIT_START: "a run is about to be given to the backend (intent); alias: its submission",
    Name.SUBMIT_END: "the backend took it (value 0) or refused it (value 1, text: why)",
    Name.JOB_QUEUED: "the backend named its job; job_id: the job",
    Name.JOB_START: "the backend says that the job runs; nodes: where, if it says so",
    Name.BINARY_EXECUTE_START: "the run's script started; nodes: where; written by the job",
    Name.BINARY_EXECUTE_END: "the run's script ended; value: its exit code; written by the job",
    Name.JOB_END: "the job is over by the scheduler's word; value: a code; alias: its state",
    Name.CHECK_START: "judging of the run started",
    Name.METRIC: "a figure of merit; alias: its name, value: the number, with unit and better",
    Name.CHECK_END: "the run's verdict; value: the code, alias: its name, text: why",
    Name.TRIAL_START: "the trial began; nodes: the host that drives it",
    Name.TRIAL_RESUME: "the trial was taken up again; nodes: the host that drives it",
    Name.TRIAL_PAUSE: "the trial stopped and can be resumed; text: why",
    Name.TRIAL_CANCEL: "a person cancelled the trial",
    Name.TRIAL_END: "every case has its runs; value: 0 if all passed, else 1",
    Name.TRIAL_EXTEND: "a person gave the trial more time; value: seconds",
    Name.TRIAL_ABANDON: "a person gave the trial up: it cannot be resumed; text: why",
    Name.ALERT: "something a person should know; alias: its kind, test: whose, text: what",
    Name.NODE_DOWN: "the scheduler says that nodes are down; nodes: which, text: why",
    Name.NODE_UP: "the scheduler says that nodes are back; nodes: which",
    Name.NODE_EXCLUDE: "nodes get no more runs of this trial; nodes: which, text: why",
    Name.NODE_ADMIT: "a person let nodes back in; nodes: which",
    Name.TEST_STOP: "a test is launched no more; test: which, text: why",
    Name.TEST_ADMIT: "a person let a test back in; test: which",
    Name.GAUGE: "a gauge was read; alias: its name, value: the number; text: why there is none",
    Name.OUTPUT_QUIET: "a run's output has not grown; value: for how many seconds",
}


@dataclass(frozen=True, slots=True)
class Code:
    """A verdict: its number, its name, what it means."""

    number: int
    name: str
    meaning: str


PENDING = Code(-1, "pending", "the run has not started")
PASS = Code(0, "pass", "every check held, and every reference that applies was met")
FAILED = Code(1, "failed", "the script ended with an exit code that was not expected")
WRONG_ANSWER = Code(2, "wrong answer", "it ran, but a check of its answer did not hold")
PERFORMANCE = Code(5, "performance", "the answer is right, but a metric misses its reference")
NODE_FAILURE = Code(9, "node failure", "a node failed under it")
IN_PROGRESS = Code(17, "in progress", "the run has started and not ended")
CANCELLED = Code(21, "cancelled", "a person or the scheduler cancelled it")
TIMEOUT = Code(23, "timeout", "it reached its walltime")
BUILD_FAILED = Code(31, "build failed", "its build failed, so it could not run")
OUT_OF_MEMORY = Code(32, "out of memory", "it was ended for using more memory than it had")
PREEMPTED = Code(33, "preempted", "the scheduler took its nodes for another job")
BOOT_FAILURE = Code(34, "boot failure", "its nodes did not boot")
REQUEUED = Code(35, "requeued", "the scheduler ended this attempt and queued the job again")
DEADLINE = Code(36, "deadline", "the scheduler ended it at its deadline")
REVOKED = Code(37, "revoked", "a sibling job started on another cluster")
LAUNCH_FAILED = Code(38, "launch failed", "the job could not be submitted or started")
LOST = Code(39, "lost", "the job vanished without a word")
NO_FIGURE = Code(40, "no figure", "a metric was not found, not a finite number, or not single")
TOO_LARGE = Code(41, "output too large", "a file is larger than what may be read to judge it")
CHECK_ERROR = Code(42, "check error", "the check itself could not be carried out")
SPECIAL_EXIT = Code(43, "special exit", "the scheduler holds it for its special exit state")
HUNG = Code(44, "hung", "its output had not grown for as long as the plan allows; it was ended")

CODES: dict[int, Code] = {
    code.number: code
    for code in (
        PENDING,
        PASS,
        FAILED,
        WRONG_ANSWER,
        PERFORMANCE,
        NODE_FAILURE,
        IN_PROGRESS,
        CANCELLED,
        TIMEOUT,
        BUILD_FAILED,
        OUT_OF_MEMORY,
        PREEMPTED,
        BOOT_FAILURE,
        REQUEUED,
        DEADLINE,
        REVOKED,
        LAUNCH_FAILED,
        LOST,
        NO_FIGURE,
        TOO_LARGE,
        CHECK_ERROR,
        SPECIAL_EXIT,
        HUNG,
    )
}


def code_of(number: int) -> Code:
    """The code of a number; a number that is not in the registry names itself."""
    return CODES.get(number) or Code(number, f"code {number}", "not in the registry")
