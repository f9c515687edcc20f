"""The registry of verdict codes. Names and numbers up to 23 are those of the OLCF Test Harness, so
that dashboards made for it keep working."""

from typing import NamedTuple


class Code(NamedTuple):
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
BOOT_FAILURE = Code(34, "boot failure", "its nodes did not boot, or did not answer")
REQUEUED = Code(35, "requeued", "the scheduler ended this attempt and queued the job again")
DEADLINE = Code(36, "deadline", "the scheduler ended it at its deadline")
REVOKED = Code(37, "revoked", "a sibling job started on another cluster")
LAUNCH_FAILED = Code(38, "launch failed", "the job could not be submitted or started")
LOST = Code(39, "lost", "the job vanished without a word")
NO_FIGURE = Code(40, "no figure", "a metric was not found, not a finite number, or not single")
TOO_LARGE = Code(41, "output too large", "a file is larger than what may be read to judge it")
CHECK_ERROR = Code(42, "check error", "the check itself could not be carried out")
SPECIAL_EXIT = Code(43, "special exit", "the scheduler holds it for its special exit state")
HUNG = Code(44, "hung", "its output had not grown for as long as it may; it was ended")
RECALLED = Code(45, "recalled", "it waited when launches were held back, so Seatrial recalled it")
KNOWN = Code(46, "known", "it failed in a way that is known, up to a day that people named")
MISPLACED = Code(
    49, "misplaced", "it ran, and did not get the cores, pages, stripes or directory it asked for"
)
REFUSED = Code(
    50,
    "refused",
    "its script was not started: the launch guard of the site refuses its program, or the space "
    "that its test requires is not there",
)
GIVEN = Code(48, "given", "nothing ran here: somebody else gave its figure, such as a vendor")
NO_VERDICT = Code(
    -2, "no verdict", "its trial ended and its journal has none: `seatrial resume` judges the run"
)

WITHDRAWN = frozenset((CANCELLED.number, RECALLED.number))
"""The codes of runs that ended because a person or Seatrial wanted it: no failures."""

CUT_OFF = WITHDRAWN | {
    code.number
    for code in (NODE_FAILURE, PREEMPTED, BOOT_FAILURE, REQUEUED, DEADLINE, REVOKED, LOST)
}
"""The codes of runs that were ended from outside: they say nothing of the program."""

UNCOUNTED = WITHDRAWN | {KNOWN.number}
"""The codes of runs that no rate of passed runs counts."""

OWN_FAULTS = frozenset(
    code.number for code in (FAILED, WRONG_ANSWER, MISPLACED, PERFORMANCE, NO_FIGURE, OUT_OF_MEMORY)
)
"""The codes of runs whose test failed by itself: a rate of passed runs counts them even if their
cases ran again."""

ERRORS = CUT_OFF - {RECALLED.number} | {
    code.number for code in (LAUNCH_FAILED, NO_VERDICT, CHECK_ERROR)
}
"""The codes of runs that failed by the fault of the machine, the scheduler or a person: JUnit calls
them errors, and the other codes failures."""

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
        RECALLED,
        KNOWN,
        GIVEN,
        MISPLACED,
        REFUSED,
        NO_VERDICT,
    )
}
"""The codes above by their numbers."""


def code_of(number: int) -> Code:
    """The code of a number; a number that is not in the registry names itself."""
    return CODES.get(number) or Code(number, f"code {number}", "not in the registry")


MAX_SAID = 200  # characters of a line of output beside a verdict


def failure_words(cause: str, line: str, reason: str) -> str:
    """Return why a run failed, what helps most first: the ``cause`` that its output
    tells, the ``line`` that told it or was the last, and the ``reason`` of its verdict."""
    said = line.partition(": ")[2][:MAX_SAID]  # without the name of its file
    if cause and said:
        return f"{cause}: {said} ({reason})" if reason else f"{cause}: {said}"
    return ": ".join(filter(None, (cause, reason, said)))
