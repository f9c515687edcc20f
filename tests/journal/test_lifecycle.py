"""The life cycles of runs and of trials, by a table that is written here a second time."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.journal.encoding import decode
from seatrial.journal.events import (
    EVENT_KINDS,
    Event,
    FiguresImported,
    JobEnded,
    JobQueued,
    JobStarted,
    ResultsImported,
    RunCreated,
    RunJudged,
    RunJudgedAgain,
    RunReviewed,
    RunSubmitted,
    ScriptEnded,
    ScriptStarted,
    TrialAbandoned,
    TrialCancelled,
    TrialEnded,
    TrialExtended,
    TrialPaused,
    TrialResumed,
    TrialStarted,
    UnknownEvent,
)
from seatrial.journal.trial import (
    INTERRUPTED,
    RUN_STATE_HELP,
    RUN_TRANSITIONS,
    TRIAL_STATE_HELP,
    TRIAL_TRANSITIONS,
    ClockSpan,
    RunLife,
    RunState,
    TrialLife,
    TrialState,
)
from seatrial.model.codes import (
    CANCELLED,
    CHECK_ERROR,
    IN_PROGRESS,
    PASS,
    PENDING,
    RECALLED,
    TIMEOUT,
    WRONG_ANSWER,
)

NS = 10**9

# The state after an event of a kind (row) in a state (column); "-": it stays. Events of all other
# kinds change no state.
RUN_TABLE = """
                new        created    submitted  queued     running    ended      judged
RunCreated      created    -          -          -          -          -          -
RunSubmitted    submitted  submitted  -          submitted  -          -          -
JobQueued       queued     queued     queued     -          -          -          -
JobStarted      running    running    running    running    -          -          -
ScriptStarted   running    running    running    running    -          -          -
ScriptEnded     running    running    running    running    -          -          -
JobEnded        ended      ended      ended      ended      ended      -          -
RunJudged       judged     judged     judged     judged     judged     judged     -
RunJudgedAgain  -          -          -          -          -          -          -
RunReviewed     -          -          -          -          -          -          -
FigureGiven     judged     -          -          -          -          -          -
"""
TRIAL_TABLE = """
                 new        running    paused     cancelled  ended      abandoned given     imported
TrialStarted     running    -          running    running    running    -          -          -
TrialResumed     running    -          running    running    running    -          -          -
TrialPaused      paused     paused     -          -          -          -          -          -
TrialCancelled   cancelled  cancelled  cancelled  -          -          -          -          -
TrialEnded       ended      ended      ended      -          -          -          -          -
TrialExtended    -          -          -          -          paused     -          -          -
TrialAbandoned   abandoned  abandoned  abandoned  abandoned  abandoned  -          -          -
FiguresImported  given      -          -          -          -          -          -          -
ResultsImported  imported   -          -          -          imported   -          -          -
"""

REQUIRED: dict[str, dict[str, Any]] = {
    "SubmitEnded": {"refused": 0},
    "OutputQuiet": {"seconds": 1},
    "CompatStarted": {"answered": 1},
    "OutputRemoved": {"files": 1},
    "JobEnded": {"code": 0},
    "RunJudged": {"code": 0},
    "RunJudgedAgain": {"code": 0},
    "BuildEnded": {"code": 0},
    "TrialEnded": {"failed": 0},
    "TrialExtended": {"seconds": 60},
    "FiguresImported": {"figures": 1},
    "ResultsImported": {"results": 1},
}
KINDS: list[type[Event]] = [*EVENT_KINDS.values(), UnknownEvent]


def an_event(kind: type[Event], time: int = 1) -> Event:
    return kind(time=time, **REQUIRED.get(kind.__name__, {}))


def transitions(table: str) -> list[tuple[str, dict[type[Event], str]]]:
    """Return each state with the state after it by every kind of event."""
    titles, *rows = table.strip("\n").splitlines()
    states = titles.split()
    written = {cells[0]: cells[1:] for cells in map(str.split, rows)}
    unchanged = ["-"] * len(states)

    def after(kind: type[Event], place: int) -> str:
        cell = written.get(kind.__name__, unchanged)[place]
        return states[place] if cell == "-" else cell

    return [
        (state, {kind: after(kind, place) for kind in KINDS}) for place, state in enumerate(states)
    ]


# ---- runs ---------------------------------------------------------------------------------

WAY = (RunCreated, RunSubmitted, JobQueued, JobStarted, JobEnded, RunJudged)


def run_in(state: RunState) -> RunLife:
    """Return the life of a run that came to a state by the usual way."""
    run = RunLife()
    for kind in WAY[: state.value]:
        run.apply(an_event(kind))
    assert run.state is state
    return run


def run_after(*events: Event) -> RunLife:
    run = RunLife()
    for event in events:
        run.apply(event)
    return run


@pytest.mark.parametrize(("before", "after"), transitions(RUN_TABLE))
def test_every_event_in_every_state_of_a_run(before: str, after: dict[type[Event], str]) -> None:
    for kind, state in after.items():
        run = run_in(RunState[before.upper()])
        assert run.apply(an_event(kind)) is (before != state), kind
        assert run.state is RunState[state.upper()], kind


def test_a_run_that_is_judged_again_has_its_last_verdict_and_keeps_its_first() -> None:
    run = run_after(
        RunJudged(time=1, code=WRONG_ANSWER.number, reason="3, not 4"),
        RunJudgedAgain(time=5, code=CHECK_ERROR.number, reason="no"),
        RunJudgedAgain(time=9, code=PASS.number, by="me", why="4 was wrong"),
        RunJudged(time=1, code=WRONG_ANSWER.number, reason="3, not 4"),  # as a journal has it twice
    )
    assert (run.code, run.reason, run.judged) == (PASS.number, "", 1)
    assert run.first_code == WRONG_ANSWER.number
    assert run.judged_again is not None
    assert (run.judged_again.time, run.judged_again.by_and_why) == (9, "me: 4 was wrong")


def test_what_people_say_of_a_run_adds_up_until_it_is_withdrawn() -> None:
    run = run_after(
        RunJudged(time=1, code=WRONG_ANSWER.number),
        RunReviewed(time=5, cause="F2", comment="slow", is_excluded=1, names=["a", "b"], by="a@h"),
        RunReviewed(time=6, comment="very slow", names=["c"], by="c@h"),
    )
    assert (run.code, run.judged) == (WRONG_ANSWER.number, 1)
    review = run.review
    assert review is not None
    assert (review.cause, review.comment, review.is_excluded) == ("F2", "very slow", 1)
    assert (review.names, review.by, review.time) == (["a", "b"], "c@h", 6)
    run.apply(RunReviewed(time=7, withdrawn=True, comment="by mistake"))
    assert run.review is None
    run.apply(RunReviewed(time=8, cause="F5"))
    assert run.review is not None
    assert (run.review.cause, run.review.is_excluded) == ("F5", 0)


def test_a_second_judgement_without_a_first_says_nothing() -> None:
    run = run_after(RunJudgedAgain(time=5, code=PASS.number))
    assert (run.code, run.judged, run.first_code) == (PENDING.number, None, None)


def test_every_state_has_a_line_of_help_and_its_transitions() -> None:
    assert list(RUN_STATE_HELP) == list(RUN_TRANSITIONS) == list(RunState)
    assert list(TRIAL_STATE_HELP) == list(TRIAL_TRANSITIONS) == list(TrialState)
    lines = [*RUN_STATE_HELP.values(), *TRIAL_STATE_HELP.values()]
    assert all(lines)
    assert len(set(lines)) == len(lines)


def test_the_eight_times_of_a_run() -> None:
    run = run_after(
        RunCreated(time=1, path="/run"),
        RunSubmitted(time=2, submission="s-1", target="fs/t", stage="full"),
        JobQueued(time=3, job_id="7"),
        JobStarted(time=4, nodes="n1"),
        ScriptStarted(time=5 * NS, nodes="n1", environment="e"),
        ScriptEnded(time=7 * NS, exit_code=3),
        JobEnded(time=8 * NS, code=0, nodes="n1"),
        RunJudged(time=9 * NS, code=TIMEOUT.number, reason="why", will_rerun=True),
    )
    assert run == RunLife(
        state=RunState.JUDGED,
        code=TIMEOUT.number,
        reason="why",
        will_rerun=True,
        created=1,
        submitted=2,
        queued=3,
        job_started=4,
        script_started=5 * NS,
        script_ended=7 * NS,
        job_ended=8 * NS,
        judged=9 * NS,
        exit_code=3,
        job_id="7",
        nodes="n1",
        path="/run",
        submission="s-1",
        target="fs/t",
        stage="full",
        environment="e",
    )
    assert run.elapsed == 2.0


def test_a_life_in_which_nothing_happened() -> None:
    run = RunLife()
    assert (run.state, run.code, run.recalled) == (RunState.NEW, PENDING.number, False)
    assert (run.reason, run.will_rerun, run.nodes, run.path) == ("", False, "", "")
    trial = TrialLife()
    assert (trial.state, trial.duration, trial.spans) == (TrialState.NEW, 0.0, [])
    assert (trial.complete, trial.over, trial.clock_runs) == (False, False, False)
    assert (trial.reason, trial.host, trial.start, trial.elapsed(5)) == ("", "", None, 0)


def test_a_run_has_no_time_before_its_event() -> None:
    run = RunLife()
    times = (
        *("created", "submitted", "queued", "job_started"),
        *("script_started", "script_ended", "job_ended", "judged"),
    )
    events = (
        *(RunCreated(time=1), RunSubmitted(time=2), JobQueued(time=3), JobStarted(time=4)),
        *(ScriptStarted(time=5), ScriptEnded(time=6)),
        *(JobEnded(time=7, code=0), RunJudged(time=8, code=0)),
    )
    for number, event in enumerate(events):
        assert [getattr(run, time) for time in times[number:]] == [None] * (8 - number)
        run.apply(event)
    assert [getattr(run, time) for time in times] == [1, 2, 3, 4, 5, 6, 7, 8]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind is not RunCreated])
def test_a_run_was_created_when_it_was_first_heard_of(kind: type[Event]) -> None:
    run = run_after(an_event(kind, 5), an_event(kind, 6))
    assert run.created == 5
    run.apply(RunCreated(time=3, path="/run"))
    assert (run.created, run.path) == (3, "/run")


@pytest.mark.parametrize(
    ("state", "code"),
    [
        *((RunState.NEW, PENDING), (RunState.CREATED, PENDING), (RunState.SUBMITTED, PENDING)),
        *((RunState.QUEUED, PENDING), (RunState.RUNNING, IN_PROGRESS)),
        *((RunState.ENDED, IN_PROGRESS), (RunState.JUDGED, PASS)),
    ],
)
def test_the_code_of_a_run_without_a_verdict(state: RunState, code: Any) -> None:
    assert run_in(state).code == code.number


@pytest.mark.parametrize("kind", [JobStarted, ScriptStarted, ScriptEnded])
def test_a_run_is_in_progress_by_any_word_of_it(kind: type[Event]) -> None:
    assert run_after(an_event(kind)).code == IN_PROGRESS.number
    ended = run_after(JobEnded(time=1, code=0))
    assert ended.code == PENDING.number
    ended.apply(an_event(kind))
    assert (ended.code, ended.state) == (IN_PROGRESS.number, RunState.ENDED)
    judged = run_after(RunJudged(time=1, code=TIMEOUT.number), an_event(kind))
    assert judged.code == TIMEOUT.number


def test_what_a_job_tells_is_recorded_though_it_comes_late() -> None:
    late = (
        JobStarted(time=4, nodes="n1"),
        ScriptStarted(time=5, job_id="7", environment="e"),
        ScriptEnded(time=6, exit_code=1),
    )
    for before in (JobEnded(time=8, code=0), RunJudged(time=9, code=0)):
        run = run_after(before, *late)
        assert (run.job_started, run.script_started, run.script_ended) == (4, 5, 6)
        assert (run.nodes, run.job_id, run.environment) == ("n1", "7", "e")
        assert run.exit_code == 1


def test_a_job_starts_once_and_ends_last() -> None:
    run = run_after(JobStarted(time=5, nodes="n1"), JobStarted(time=4), JobStarted(time=6))
    assert (run.job_started, run.nodes) == (5, "n1")
    run.apply(JobEnded(time=8, code=0, nodes="n[1-2]"))
    run.apply(JobEnded(time=9, code=0))
    assert (run.job_ended, run.nodes) == (9, "n[1-2]")
    run.apply(JobStarted(time=7, nodes="n3"))
    assert (run.job_started, run.nodes) == (5, "n3")


def test_the_schedulers_word_about_nodes_stands() -> None:
    forged = ScriptStarted(time=6, nodes="n9")
    run = run_after(JobStarted(time=5, nodes="n1"), forged)
    assert run.nodes == "n1"
    run = run_after(JobStarted(time=5), forged)  # a job on this host
    assert run.nodes == "n9"
    run.apply(JobEnded(time=8, code=0, nodes="n1"))
    run.apply(forged)
    assert run.nodes == "n1"


def test_of_a_script_that_starts_or_ends_twice_the_last_time_counts() -> None:
    run = run_after(
        ScriptStarted(time=5, nodes="n1", job_id="7", environment="e"),
        ScriptStarted(time=9),
        ScriptStarted(time=6),
    )
    assert (run.script_started, run.nodes, run.job_id, run.environment) == (9, "n1", "7", "e")
    run.apply(ScriptEnded(time=12, exit_code=1))
    run.apply(ScriptEnded(time=11, exit_code=2))
    assert (run.script_ended, run.exit_code, run.job_id) == (12, 1, "7")
    run.apply(ScriptEnded(time=12, exit_code=3, job_id="8"))
    assert (run.exit_code, run.job_id) == (3, "8")


def test_of_two_verdicts_the_later_one_counts() -> None:
    run = run_after(
        RunJudged(time=5, code=1, reason="a", will_rerun=True), RunJudged(time=4, code=2)
    )
    assert (run.judged, run.code, run.reason, run.will_rerun) == (5, 1, "a", True)
    run.apply(RunJudged(time=5, code=3, reason="b"))
    assert (run.judged, run.code, run.reason, run.will_rerun) == (5, 3, "b", False)


def test_a_run_that_never_reached_the_scheduler_is_submitted_again() -> None:
    run = run_after(
        RunCreated(time=1, path="/run"),
        RunSubmitted(time=2, submission="s-1", target="a", stage="alone"),
        JobQueued(time=3, job_id="7"),
        RunSubmitted(time=4, submission="s-2", target="b", stage="full"),
    )
    assert (run.submitted, run.queued, run.job_id) == (4, None, "")
    assert (run.submission, run.target, run.stage) == ("s-2", "b", "full")
    assert (run.created, run.path) == (1, "/run")
    run.apply(JobQueued(time=5, job_id="8"))
    run.apply(JobQueued(time=6))
    assert (run.queued, run.job_id) == (6, "8")
    run.apply(JobStarted(time=7))
    run.apply(RunSubmitted(time=8))
    assert (run.submitted, run.queued, run.job_id) == (8, 6, "8")
    assert (run.submission, run.target, run.stage) == ("", "", "")


def test_the_path_of_a_run_stays() -> None:
    assert run_after(RunCreated(time=1, path="/run"), RunCreated(time=2)).path == "/run"


@pytest.mark.parametrize(
    ("started", "ended", "elapsed"),
    [
        *((None, None, None), (5, None, None), (None, 5, None)),
        *((5, 4, None), (5, 5, 0.0), (5, 5 + NS // 2, 0.5), (0, 3 * NS, 3.0)),
    ],
)
def test_the_elapsed_time_of_a_script(
    started: int | None, ended: int | None, elapsed: float | None
) -> None:
    assert RunLife(script_started=started, script_ended=ended).elapsed == elapsed


# ---- recalled runs ------------------------------------------------------------------------


@pytest.mark.parametrize("code", [CANCELLED, RECALLED])
def test_a_run_that_seatrial_recalled_before_it_started(code: Any) -> None:
    """Version 0.1 gave such a run the code of a cancelled one."""
    run = run_after(JobQueued(time=1), JobEnded(time=2, code=code.number, recalled=True))
    assert run.recalled
    run.apply(RunJudged(time=3, code=code.number, reason="why"))
    assert (run.code, run.recalled, run.reason) == (RECALLED.number, True, "why")


def test_a_recalled_run_may_have_another_verdict() -> None:
    run = run_after(
        JobEnded(time=2, code=0, recalled=True), RunJudged(time=3, code=CHECK_ERROR.number)
    )
    assert run.code == CHECK_ERROR.number


def test_a_run_that_started_is_not_recalled() -> None:
    run = run_after(
        JobStarted(time=1),
        JobEnded(time=2, code=CANCELLED.number, recalled=True),
        RunJudged(time=3, code=CANCELLED.number),
    )
    assert (run.code, run.recalled) == (CANCELLED.number, False)


def test_a_run_that_others_cancelled_is_not_recalled() -> None:
    cancelled = CANCELLED.number
    run = run_after(JobEnded(time=2, code=cancelled), RunJudged(time=3, code=cancelled))
    assert (run.code, run.recalled) == (cancelled, False)


def test_a_verdict_that_is_no_number_is_a_check_error() -> None:
    run = run_after(decode(b'{"time":1,"event":"check_end","value":"pass"}'))
    assert (run.state, run.code) == (RunState.JUDGED, CHECK_ERROR.number)


# ---- trials -------------------------------------------------------------------------------


def trial_in(state: TrialState, duration: float = 100.0) -> TrialLife:
    """Return the life of a trial that came to a state by the shortest way."""
    ways: dict[TrialState, list[type[Event]]] = {
        TrialState.NEW: [],
        TrialState.RUNNING: [TrialStarted],
        TrialState.PAUSED: [TrialStarted, TrialPaused],
        TrialState.CANCELLED: [TrialStarted, TrialCancelled],
        TrialState.ENDED: [TrialStarted, TrialEnded],
        TrialState.ABANDONED: [TrialStarted, TrialAbandoned],
        TrialState.GIVEN: [FiguresImported],
        TrialState.IMPORTED: [ResultsImported],
    }
    life = TrialLife(duration)
    for kind in ways[state]:
        life.apply(an_event(kind))
    assert life.state is state
    return life


def trial_after(*events: Event, duration: float = 100.0) -> TrialLife:
    life = TrialLife(duration)
    for event in events:
        life.apply(event)
    return life


@pytest.mark.parametrize(("before", "after"), transitions(TRIAL_TABLE))
def test_every_event_in_every_state_of_a_trial(before: str, after: dict[type[Event], str]) -> None:
    for kind, state in after.items():
        for life in (trial_in(TrialState(before)), TrialLife(math.inf, TrialState(before))):
            counts = kind.__name__ in TRIAL_TABLE and before != "abandoned"
            assert life.apply(an_event(kind)) is counts, kind
            assert life.state is TrialState(state), kind
        changed = TRIAL_TRANSITIONS[TrialState(before)].get(kind)
        assert changed is (None if before == state else TrialState(state)), kind


STOPS: list[type[Event]] = [TrialPaused, TrialCancelled, TrialEnded, TrialAbandoned]


@pytest.mark.parametrize("state", TrialState)
def test_the_clock_runs_in_the_state_running_and_in_no_other(state: TrialState) -> None:
    assert trial_in(state).clock_runs is (state is TrialState.RUNNING)


def test_a_trial_that_was_abandoned_stays_so() -> None:
    life = trial_after(
        TrialStarted(time=1, host="a"),
        TrialAbandoned(time=2, reason="too slow"),
        TrialCancelled(time=3, reason="twice"),
        TrialPaused(time=4, reason="paused"),
        TrialEnded(time=5, failed=0),
        TrialExtended(time=6, seconds=60),
        TrialResumed(time=7, host="b"),
    )
    assert (life.state, life.reason) == (TrialState.ABANDONED, "too slow")
    assert (life.over, life.complete, life.duration) == (True, False, 100.0)
    assert life.spans == [ClockSpan(1, 2, TrialAbandoned, "too slow")]


def test_what_a_person_cancelled_stays_so_until_it_is_resumed() -> None:
    life = trial_after(
        TrialStarted(time=1),
        TrialCancelled(time=2, reason="stop it"),
        TrialPaused(time=3, reason="nothing is left"),
    )
    assert (life.state, life.reason, life.over) == (TrialState.CANCELLED, "nothing is left", False)
    life.apply(TrialEnded(time=4, failed=1, reason="the end"))
    assert (life.state, life.complete, life.over) == (TrialState.CANCELLED, True, True)
    life.apply(TrialResumed(time=5))
    assert (life.state, life.complete, life.over) == (TrialState.RUNNING, False, False)
    assert life.reason == ""


@pytest.mark.parametrize("kind", [TrialStarted, TrialResumed, TrialExtended])
def test_a_trial_is_complete_until_it_goes_on(kind: type[Event]) -> None:
    life = trial_after(TrialStarted(time=1), TrialEnded(time=2, failed=0, reason="the end"))
    assert (life.complete, life.over, life.reason) == (True, True, "the end")
    life.apply(an_event(kind))
    assert (life.complete, life.over, life.reason) == (False, False, "")


@pytest.mark.parametrize("kind", [TrialPaused, TrialCancelled])
def test_the_reason_of_an_end_stays(kind: type[TrialPaused]) -> None:
    life = trial_after(
        TrialStarted(time=1), TrialEnded(time=2, failed=0, reason="a"), kind(time=3, reason="b")
    )
    assert (life.state, life.reason, life.complete) == (TrialState.ENDED, "a", True)
    life.apply(TrialAbandoned(time=4, reason="c"))
    assert (life.state, life.reason) == (TrialState.ABANDONED, "c")


def test_the_host_is_the_one_that_drove_the_trial_last() -> None:
    life = trial_after(TrialStarted(time=1, host="a"))
    assert life.host == "a"
    life.apply(TrialResumed(time=2, host="b"))
    life.apply(TrialPaused(time=3))
    assert life.host == "b"


# ---- the duration -------------------------------------------------------------------------


@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), -float("inf"), 0, -1, 10**400])
@pytest.mark.parametrize("state", TrialState)
def test_an_extension_that_adds_no_time_changes_nothing(seconds: float, state: TrialState) -> None:
    life = trial_in(state)
    complete = life.complete
    assert not life.apply(TrialExtended(time=9, seconds=seconds))
    assert (life.state, life.duration, life.complete) == (state, 100.0, complete)


def test_an_extension_that_is_no_number_changes_nothing() -> None:
    life = trial_in(TrialState.ENDED)
    assert not life.apply(decode(b'{"time":9,"event":"trial_extend","value":"1h"}'))
    assert (life.state, life.duration) == (TrialState.ENDED, 100.0)


@pytest.mark.parametrize("state", [state for state in TrialState if state != "abandoned"])
def test_extensions_add_up(state: TrialState) -> None:
    life = trial_in(state)
    assert life.apply(TrialExtended(time=9, seconds=60))
    assert life.apply(TrialExtended(time=10, seconds=0.5))
    assert life.duration == 160.5


def test_a_trial_without_a_limit_cannot_be_extended() -> None:
    life = trial_in(TrialState.ENDED, duration=0.0)
    assert not life.apply(TrialExtended(time=9, seconds=60))
    assert (life.state, life.duration, life.complete) == (TrialState.ENDED, 0.0, True)
    assert life.over_at() is None


# ---- the clock ----------------------------------------------------------------------------


def test_the_clock_stands_while_the_trial_is_paused() -> None:
    life = trial_after(
        TrialStarted(time=100 * NS), TrialPaused(time=110 * NS), TrialPaused(time=120 * NS),
        duration=10.0,
    )  # fmt: skip
    assert life.elapsed(500 * NS) == 10
    assert life.over_at() == 0  # it is over, whatever the time
    life.apply(TrialExtended(time=130 * NS, seconds=10))
    assert life.over_at() is None
    life.apply(TrialResumed(time=200 * NS))
    life.apply(TrialResumed(time=205 * NS))  # a driver that died, and another one
    assert life.elapsed(207 * NS) == 17
    assert (life.start, life.over_at()) == (100 * NS, 210 * NS)


def test_the_spans_of_the_clock() -> None:
    life = TrialLife()
    assert (life.start, life.spans) == (None, [])
    life.apply(TrialStarted(time=1))
    assert life.spans == [ClockSpan(1)]
    life.apply(TrialResumed(time=3))
    life.apply(TrialCancelled(time=5, reason="stop it"))
    life.apply(TrialPaused(time=6, reason="later"))
    life.apply(TrialResumed(time=7))
    assert life.spans == [
        ClockSpan(1, 3, None, INTERRUPTED),
        ClockSpan(3, 5, TrialCancelled, "stop it"),
        ClockSpan(7),
    ]
    assert life.start == 1


def test_a_clock_that_steps_back_takes_nothing_away() -> None:
    life = trial_after(TrialStarted(time=100), TrialPaused(time=90), TrialResumed(time=50))
    assert round(life.elapsed(40) * 10**9) == 0
    assert round(life.elapsed(60) * 10**9) == 10
    life.apply(TrialResumed(time=45))
    assert life.spans == [
        ClockSpan(100, 100, TrialPaused), ClockSpan(50, 50, None, INTERRUPTED), ClockSpan(45)
    ]  # fmt: skip
    assert round(life.elapsed(60) * 10**9) == 10


@given(
    st.lists(
        st.tuples(
            st.sampled_from([TrialStarted, TrialResumed, *STOPS[:-1]]), st.integers(0, 10**6)
        ),
        max_size=12,
    ),
    st.integers(0, 10**6),
)
def test_the_clock_adds_up_what_lies_between_starts_and_stops(
    steps: list[tuple[type[Event], int]], more: int
) -> None:
    life, now, ran, runs = TrialLife(), 1000, 0, False
    for kind, pause in steps:
        now += pause
        ran += pause if runs else 0
        life.apply(an_event(kind, now))
        runs = kind not in STOPS
        assert life.clock_runs is runs
        assert round(life.elapsed(now) * 10**9) == ran
    assert round(life.elapsed(now + more) * 10**9) == ran + (more if runs else 0)
    ended = [span.end - span.start for span in life.spans if span.end is not None]
    since = life.spans[-1].start if runs else now
    assert sum(ended) + now - since == ran
    assert [span.end is None for span in life.spans] == [False] * len(ended) + [True] * runs


@given(st.floats(0.001, 1e8), st.integers(1, 10**18), st.integers(0, 10**15))
def test_the_time_is_up_exactly_when_it_says(seconds: float, start: int, ran: int) -> None:
    life = trial_after(
        TrialStarted(time=start), TrialPaused(time=start + ran), TrialResumed(time=start + 2 * ran),
        duration=seconds,
    )  # fmt: skip
    when = life.over_at()
    assert when is not None
    assert round(life.elapsed(start + 2 * ran) * 10**9) == ran
    if when > start + 2 * ran:
        assert life.elapsed(when) == round(seconds * NS) / NS
        assert life.elapsed(when - 1) == (round(seconds * NS) - 1) / NS


def test_a_trial_of_which_only_the_state_is_known() -> None:
    life = TrialLife(math.inf, TrialState.RUNNING)
    assert life.apply(TrialPaused(time=5, reason="why"))
    assert (life.state, life.reason, life.spans) == (TrialState.PAUSED, "why", [])
    assert life.apply(TrialResumed(time=7))
    assert life.spans == [ClockSpan(7)]
