"""What the criteria `findings` and `network` have in common: of each case the latest right run
counts, and the case with most findings is the worst."""

from __future__ import annotations

from seatrial.journal.events import TrialEnded
from seatrial.model.codes import FAILED
from seatrial.results.criteria.view import Result
from tests.results.stories import Story, cases_of

Figures = dict[str, float]


def latest_of_three_cases(
    criterion: str, none: Figures, found: Figures, others: Figures
) -> tuple[Story, Result, Result, Result]:
    """Tell of three cases: the first found nothing, the latest right run of the second found 3,
    ``others`` of its runs something else and the latest nothing, the third left no figures. Return
    the story, and the results of the trial and of the first two."""
    story = Story(cases_of(1, 1, 1))
    story.run(0, 0, 1, figures=none)
    story.run(1, 0, 3, figures=found)  # began first, judged last
    story.run(1, 1, 2, figures=others)
    story.run(1, 3, 4, FAILED, figures=others)
    story.run(1, 4, 5)
    story.run(2, 0, 1)
    assert "the trial goes on" in story.result(criterion, at_most=3).reason
    story.tell(5, TrialEnded, failed=0)
    whole, first, second = story.judged(criterion, at_most=3)
    assert [(one.state, one.value, one.n) for one in (whole, first, second)] == [
        ("undecided", 3, 3),
        ("met", 0, 1),
        ("undecided", 3, 2),
    ], "the latest run of the second left nothing"
    assert second.reason.startswith("the latest run, r5, left ")
    assert first.reason == "nothing in the latest of 1 run"
    named = story.judged(criterion, at_most=3, tests=["a", "c"])
    assert [one.state for one in named] == ["undecided", "met", "undecided"]
    assert named[2].subject == story.cases[2].name
    return story, whole, first, second


def one_more_is_the_worst(criterion: str, metric: str) -> None:
    """Of two cases that differ by one finding, the one with more is the worst."""
    story = Story(cases_of(1, 1))
    for case in (0, 1):
        story.run(case, 0, 1, figures={metric: case})
    story.tell(5, TrialEnded, failed=0)
    assert story.result(criterion, at_most=1).numbers["worst"] == story.cases[1].name
