"""Tables of what people said of runs: exclusions by agreement, causes.

excluded_by_agreement(status.reviews).rows[0]
"""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.acceptance.reviews import RunReview
from seatrial.report.content import Cell, Table, bounded
from seatrial.units import listed
from seatrial.verify.reading import plain_line

MAX_NAMED = 5


def excluded_by_agreement(reviews: Sequence[RunReview]) -> Table:
    """Return the runs that both sides excluded, with who and why."""
    rows: list[list[Cell]] = [
        [
            each.run,
            plain_line(each.case),
            each.verdict,
            plain_line(each.cause),
            plain_line(each.comment),
            plain_line(", ".join(each.by)),
            plain_line(each.user),
            each.time,
        ]
        for each in reviews
        if each.is_excluded
    ]
    columns = "run | case | verdict | cause | comment | agreed by | recorded by | when: time"
    about = (
        "Criteria on verdicts and figures leave these runs out, and say what they would be with "
        "them. What was measured did not change; their nodes were used all the same."
    )
    return bounded("Runs excluded by agreement", columns, rows, about)


def causes(reviews: Sequence[RunReview]) -> Table:
    """Return the causes that people gave, with the numbers of runs and the comments."""
    found: dict[str, list[RunReview]] = {}
    for each in reviews:
        found.setdefault(each.cause, []).append(each)
    rows: list[list[Cell]] = [
        [
            plain_line(cause) or "none given",
            len(some),
            sum(each.is_excluded for each in some),
            listed(list(dict.fromkeys(each.test for each in some)), MAX_NAMED),
            listed([each.run for each in some], MAX_NAMED),
            plain_line(listed([each.comment for each in some if each.comment], MAX_NAMED)),
            plain_line(listed(list(dict.fromkeys(n for r in some for n in r.by)), MAX_NAMED)),
        ]
        for cause, some in sorted(found.items(), key=lambda item: -len(item[1]))
    ]
    columns = "cause | runs: count | excluded: count | tests | run | comments | by"
    return bounded("Causes that people gave", columns, rows, "Verdicts and figures stay.")
