"""The sub-phases of a trial: the stretches between pauses and interruptions.

    sub_phases(history.spans, history.runs, now)

A pause stops the trial's clock, and the trial goes on in a new sub-phase. A driver that dies does
not stop it, because its jobs go on: that sub-phase lasts until the trial is resumed. So the times
of the sub-phases add up to the trial's clock.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate

from msgspec import Struct

from seatrial.acceptance.trial_history import RunHistory
from seatrial.journal.events import Event, TrialAbandoned, TrialCancelled, TrialEnded, TrialPaused
from seatrial.journal.trial_life import ClockSpan, end_by
from seatrial.units import SECOND_NS

_ENDED_BY: dict[type[Event], str] = {  # where the event gives no reason
    TrialPaused: "paused",
    TrialCancelled: "cancelled",
    TrialAbandoned: "abandoned",
    TrialEnded: "the trial ended",
}


class SubPhase(Struct, frozen=True, kw_only=True, rename={"start": "from", "end": "to"}):
    """A stretch of a trial's clock, numbered from 1. ``start`` and ``end`` (None while it goes on)
    in ns, ``clock`` in seconds; ``ended_by`` is the reason of a pause, or what else ended it.
    ``accepted`` counts the runs that passed from its start to that of the next."""

    number: int
    start: int
    end: int | None
    clock: float
    ended_by: str
    accepted: int


def sub_phases(
    spans: Sequence[ClockSpan], runs: Iterable[RunHistory], now: int, duration: float = 0.0
) -> list[SubPhase]:
    """Return the sub-phases of a trial whose clock ran in these spans, in their order, up to its
    duration (seconds) if it has one."""
    starts = [span.start for span in spans]
    accepted = [0] * len(spans)
    for run in runs:
        if run.judged is not None and run.passed and spans:
            accepted[max(0, bisect_right(starts, run.judged) - 1)] += 1
    lengths = [max(0, end_by(span.end, now) - span.start) / SECOND_NS for span in spans]
    if duration:
        before = accumulate(lengths, initial=0.0)
        lengths = [
            max(0.0, min(length, duration - ran))
            for length, ran in zip(lengths, before, strict=False)
        ]
    return [
        SubPhase(
            number=i + 1,
            start=span.start,
            end=span.end,
            clock=lengths[i],
            ended_by=_ended_by(span),
            accepted=accepted[i],
        )
        for i, span in enumerate(spans)
    ]


def _ended_by(span: ClockSpan) -> str:
    """Return what ended a span: the reason that was given, else the kind of the event. The reason
    of an abandoned trial is what a person wrote, so the kind precedes it."""
    if span.ended_by is None:
        return span.reason
    usual = _ENDED_BY[span.ended_by]
    if span.ended_by is TrialAbandoned and span.reason not in ("", usual):
        return f"{usual}: {span.reason}"
    return span.reason or usual
