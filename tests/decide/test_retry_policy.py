from __future__ import annotations

from seatrial.decide.state import MAX_LOSSES, MAX_REFUSED, RetryPolicy
from seatrial.model.codes import (
    CANCELLED,
    FAILED,
    HUNG,
    KNOWN,
    LAUNCH_FAILED,
    LOST,
    NODE_FAILURE,
    OUT_OF_MEMORY,
    PASS,
    PERFORMANCE,
    RECALLED,
    REFUSED,
    TIMEOUT,
    WRONG_ANSWER,
)
from seatrial.model.policy import Entry


def test_each_cause_has_its_answer_and_attempts_are_bounded() -> None:
    answers = RetryPolicy([Entry(name="t", answers={"timeout": "again"}, attempts=3)])
    assert answers.answer(0, NODE_FAILURE.number) == "never"
    assert not answers.will_rerun(0, 0, NODE_FAILURE.number, 1)
    for _ in range(2):
        assert answers.will_rerun(0, 0, TIMEOUT.number, 1)
        answers.retried(0)
    assert not answers.will_rerun(0, 0, TIMEOUT.number, 1)
    assert answers.will_rerun(0, 0, TIMEOUT.number, 2)  # of two runs each has its attempts


def test_what_was_lost_is_made_good_a_few_times_where_nothing_is_said() -> None:
    answers = RetryPolicy([Entry(name="")])
    for _ in range(MAX_LOSSES):
        assert answers.will_rerun(0, 0, LOST.number, 1)
        answers.retried(0)
    assert not answers.will_rerun(0, 0, LOST.number, 1)


def test_wrong_answers_in_a_row_stop_a_test_and_no_answer_breaks_no_row() -> None:
    answers = RetryPolicy([Entry(name="t", stop_after=2), Entry(name="u", stop_after=2)])
    for code in (WRONG_ANSWER, PASS, WRONG_ANSWER, TIMEOUT):
        answers.verdict(0, code.number)
    answers.verdict(1, WRONG_ANSWER.number)
    assert not answers.to_stop
    answers.verdict(0, WRONG_ANSWER.number)
    assert answers.to_stop == {0: "2 wrong answers in a row"}
    answers.forgive(0)
    answers.verdict(0, WRONG_ANSWER.number)
    assert not answers.to_stop


def test_failures_of_any_cause_in_a_row_stop_a_test_where_that_is_asked() -> None:
    entries = [Entry(name="t", stop_after=3, stop_failures=3), Entry(name="u", stop_after=3)]
    answers = RetryPolicy(entries)
    for entry in (0, 1):
        for code in (FAILED, TIMEOUT, PASS, HUNG, PERFORMANCE, LAUNCH_FAILED, OUT_OF_MEMORY):
            answers.verdict(entry, code.number)
        for code in (NODE_FAILURE, CANCELLED, RECALLED, KNOWN, LOST):  # neither count nor end a row
            answers.verdict(entry, code.number)
        assert entry not in answers.to_stop
        answers.verdict(entry, FAILED.number, "exit code 3")
    assert answers.to_stop == {0: "3 failures in a row, the last: failed: exit code 3"}
    answers.forgive(0)
    answers.verdict(0, FAILED.number)
    assert not answers.to_stop
    for _ in range(3):
        answers.verdict(1, WRONG_ANSWER.number)
    assert answers.to_stop == {1: "3 wrong answers in a row"}


def test_launches_that_fail_in_a_row_stop_a_test_that_would_be_launched_for_ever() -> None:
    answers, once = RetryPolicy([Entry(name="t")], endless=True), RetryPolicy([Entry(name="t")])
    for code in [LAUNCH_FAILED] * (MAX_REFUSED - 1) + [TIMEOUT] + [REFUSED] * MAX_REFUSED:
        assert not answers.to_stop
        answers.verdict(0, code.number, "no such account")
        once.verdict(0, code.number)
    assert answers.to_stop == {0: f"{MAX_REFUSED} launches in a row failed: no such account"}
    assert not once.to_stop
    answers.forgive(0)
    answers.verdict(0, LAUNCH_FAILED.number)
    assert not answers.to_stop
