from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.journal.events import (
    Event,
    TrialAbandoned,
    TrialCancelled,
    TrialEnded,
    TrialPaused,
    TrialResumed,
    TrialStarted,
)
from seatrial.model.codes import FAILED
from seatrial.results.status import SubPhase, sub_phases

from .stories import Story, at, cases_of

TURNS: list[type[Event]] = [
    *(TrialStarted, TrialResumed, TrialPaused, TrialCancelled, TrialAbandoned, TrialEnded)
]


def found(story: Story, now: float) -> list[SubPhase]:
    history = story.history()
    return sub_phases(history.spans, history.runs, at(now))


def test_pauses_and_interruptions_cut_a_trial() -> None:
    story = Story(cases_of(1))
    story.run(0, 0, 1)
    story.run(0, 0, 1, FAILED)
    story.run(0, 1, 2.5)  # ends in the pause
    story.tell(2, TrialPaused, reason="maintenance")
    story.tell(2.2, TrialPaused, reason="said again")
    story.tell(4, TrialResumed)
    story.tell(7, TrialResumed)  # its driver was killed, and noted no pause
    story.run(0, 7, 8)
    story.tell(9, TrialCancelled)
    story.tell(10, TrialResumed)
    first, second, third, last = found(story, 10.5)
    assert (first.number, first.start, first.end) == (1, at(0), at(2))
    assert (first.clock, first.ended_by, first.accepted) == (2 * 3600, "maintenance", 2)
    assert (second.start, second.end, second.ended_by) == (at(4), at(7), "interrupted")
    assert (third.clock, third.ended_by, third.accepted) == (2 * 3600, "cancelled", 1)
    assert (last.end, last.clock, last.ended_by, last.accepted) == (None, 1800, "", 0)
    story.tell(11, TrialEnded, failed=0)
    assert found(story, 12)[-1].ended_by == "the trial ended"


def test_their_times_end_with_the_duration_of_the_trial() -> None:
    """Its last jobs end later."""
    story = Story(cases_of(1))
    story.tell(2, TrialPaused)
    story.tell(4, TrialResumed)
    story.tell(9, TrialEnded, failed=0)
    history = story.history()
    parts = sub_phases(history.spans, history.runs, at(9), 5 * 3600)
    assert [part.clock for part in parts] == [2 * 3600, 3 * 3600]


def test_a_trial_that_has_not_begun_has_none() -> None:
    assert sub_phases([], [], at(1)) == []


@pytest.mark.parametrize(
    ("why", "said"),
    [("again", "abandoned: again"), ("", "abandoned"), ("abandoned", "abandoned")],
)
def test_an_abandoned_trial_says_so(why: str, said: str) -> None:
    story = Story(cases_of(1))
    story.tell(1, TrialAbandoned, reason=why)
    assert found(story, 2)[-1].ended_by == said


@given(st.lists(st.sampled_from(TURNS), max_size=12), st.integers(0, 20))
def test_their_times_add_up_to_the_clock_of_the_trial(kinds: list[type[Event]], runs: int) -> None:
    story = Story(cases_of(1))
    for hour, kind in enumerate(kinds, 1):
        story.tell(hour, kind, **({"failed": 0} if kind is TrialEnded else {}))
    for hour in range(runs):
        story.run(0, hour, hour + 0.5)
    parts = found(story, 24)
    assert sum(part.clock for part in parts) == story.history().clock(at(24))
    assert sum(part.accepted for part in parts) == runs
    assert [part.number for part in parts] == list(range(1, len(parts) + 1))
