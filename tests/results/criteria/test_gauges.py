"""The criterion on a gauge: the share of time inside its bounds, and gaps that nobody read."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.journal.events import GaugeRead, TrialEnded, TrialPaused, TrialResumed
from seatrial.model.file_model import Share
from seatrial.model.plan import Criterion
from seatrial.model.policy import Window
from seatrial.results.criteria.view import Result, TrialView
from seatrial.results.holds import gauge_spans, gauge_use
from seatrial.results.status import judge
from seatrial.results.trial_history import TrialHistory
from seatrial.units import SECOND_NS
from tests.results import stories
from tests.results.stories import Story, cases_of, sustained

HOUR = 3600.0
MINUTE = 60
EVERY = 100.0  # seconds for which a reading holds


def at(second: float) -> int:
    return stories.at(second / HOUR)


def read(story: Story, since: float, until: float, value: float | None) -> None:
    """Readings each minute, from a time (s) to before another."""
    for time in range(round(since), round(until), MINUTE):
        story.tell(
            time / HOUR, GaugeRead, gauge="load", value=value, reason="" if value else "it hangs"
        )


def trial(hours: float = 10, **more: Any) -> Story:
    cases = cases_of(2, 2)
    return Story(cases, sustained(cases, hours, **more))


def history_of(story: Story) -> TrialHistory:
    history = story.history(4)
    history.gauge_holds = {"load": EVERY}
    return history


def asked(story: Story, share: str = "95%", now: float = 10 * HOUR, **bounds: Any) -> Result:
    limits = bounds or {"at_most": 400}
    criterion = Criterion(criterion="gauge", gauge="load", share=Share(share), **limits)
    (result,) = judge(criterion, TrialView(history_of(story), at(now)))
    return result


def planted(gap: float | None = None) -> Story:
    """10 h: 300 for 9 h, 600 for 15 minutes, then ``gap`` or failures for 45 minutes."""
    story = trial()
    read(story, 0, 9 * HOUR, 300)
    read(story, 9 * HOUR, 9.25 * HOUR, 600)
    read(story, 9.25 * HOUR, 10 * HOUR, gap)
    story.tell(10, TrialEnded, failed=0)
    return story


def test_a_gap_is_neither_good_nor_bad() -> None:
    """The example of its page."""
    result = asked(planted())
    assert result.state == "undecided"
    assert result.value == pytest.approx(9 / 9.25, abs=1e-9)
    assert "only 92.5 % of the time has a reading" in result.reason
    assert result.numbers["gaps"] == pytest.approx(2700)
    assert (result.numbers["least"], result.numbers["highest"]) == (300, 600)
    for share, state in (("90%", "met"), ("90.1%", "undecided"), ("97.4%", "undecided")):
        assert asked(planted(), share).state == state, share
    assert asked(planted(), "97.6%").state == "not met", "even if each gap had been good"
    assert asked(planted(), "100%").state == "not met"


def test_without_gaps_the_share_decides() -> None:
    story = planted(200)
    assert asked(story, "97.5%").state == "met"
    assert asked(story, "97.6%").state == "not met"
    assert asked(story, "92.5%", at_least=250, at_most=600).state == "met"
    assert asked(story, "92.6%", at_least=250, at_most=600).state == "not met"
    assert asked(story, "100%", at_most=600).state == "met"


def test_before_the_end_what_is_to_come_may_decide() -> None:
    story = trial()
    read(story, 0, 4 * HOUR, 300)
    assert asked(story, "90%", now=4 * HOUR).state == "undecided"
    assert asked(story, "39%", now=4 * HOUR).state == "met"
    read(story, 4 * HOUR, 6 * HOUR, 500)
    assert asked(story, "90%", now=6 * HOUR).state == "not met"
    assert asked(trial(), now=HOUR).state == "undecided"


def test_nobody_read_it() -> None:
    story = trial()
    story.tell(10, TrialEnded, failed=0)
    result = asked(story)
    assert (result.state, result.value) == ("undecided", None)
    assert result.reason == "gauge load gave no reading"


def test_pauses_and_outages_do_not_count_and_a_reading_holds_from_the_start() -> None:
    story = trial(2, outages=[Window(start=HOUR, end=1.5 * HOUR)])
    story.tell(5 / HOUR, GaugeRead, gauge="load", value=1.0)
    read(story, 60, HOUR, 1)
    read(story, HOUR, 1.5 * HOUR, 900)
    story.tell(1.5, TrialPaused, reason="tea")
    story.tell(5, TrialResumed)
    story.tell(5 + 5 / HOUR, GaugeRead, gauge="load", value=1.0)
    read(story, 5 * HOUR + 60, 5.5 * HOUR, 1)
    story.tell(5.5, TrialEnded, failed=0)
    result = asked(story, "100%", now=5.5 * HOUR)
    assert (result.state, result.numbers["gaps"]) == ("met", 0), result.reason
    assert result.numbers["inside"] == pytest.approx(1.5 * HOUR)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 7200), st.sampled_from([1.0, 500.0, None])),
        unique_by=lambda x: x[0],
    ),
    st.integers(1, 7200),
)
def test_each_moment_is_inside_outside_or_a_gap(
    readings: list[tuple[int, float | None]], end: int
) -> None:
    """Beside a count of each second by the rule's words."""
    story = trial(2)
    for time, value in sorted(readings):
        if time < end:
            story.tell(time / HOUR, GaugeRead, gauge="load", value=value)
    story.tell(end / HOUR, TrialEnded, failed=0)
    history = history_of(story)
    spans = gauge_spans(history, "load", at(end))
    use = gauge_use(spans, history.window(at(end)), [], lambda value: value <= 400)
    told = {time: value for time, value in sorted(readings) if time < end}
    holds = EVERY + 1
    found = [0, 0, 0]
    first = min(told, default=None)
    for second in range(end):
        before = [time for time in told if time <= second]
        value, age = (told[max(before)], second - max(before)) if before else (None, 0)
        if not before and first is not None and first <= holds:
            value = told[first]
        found[2 if value is None or age >= holds else int(value > 400)] += 1
    assert (use.good, use.bad, use.gap) == tuple(each * SECOND_NS for each in found)
