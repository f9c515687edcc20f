"""List what people said of the runs of a trial: causes, comments, exclusions by agreement."""

from msgspec import Struct

from seatrial.acceptance.trial_history import TrialHistory
from seatrial.journal.codes import code_of


class RunReview(Struct, frozen=True, kw_only=True):
    """What people said of a run, all reviews together. ``is_excluded``: both sides agreed that
    criteria leave it out. ``time`` (ns) and ``user`` are of the latest review."""

    run: str
    test: str
    case: str
    verdict: str
    cause: str
    comment: str
    is_excluded: bool
    by: list[str]
    user: str
    time: int


def reviews_of(history: TrialHistory) -> list[RunReview]:
    """Return the reviews of the runs of a trial, in the order of the runs."""
    return [
        RunReview(
            run=run.id,
            test=history.test_of(run),
            case=history.cases[run.case].name,
            verdict=code_of(run.code).name,
            cause=run.review.cause,
            comment=run.review.comment,
            is_excluded=run.is_excluded,
            by=run.review.names,
            user=run.review.by,
            time=run.review.time,
        )
        for run in history.runs
        if run.review is not None
    ]
