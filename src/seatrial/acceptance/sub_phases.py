"""The sub-phases of a trial: the stretches that pauses and interruptions cut it into.

    turns = [event for event in journal if event.event in TURNS]
    sub_phases(turns, runs, now)

A pause stops the trial's clock, and the trial goes on in a new sub-phase. A driver that dies stops
no clock, as jobs go on: its sub-phase lasts until the trial is taken up again. So their times add
up to the trial's clock.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from msgspec import Struct

from seatrial.acceptance.trial_history import RunHistory
from seatrial.journal.codes import Name
from seatrial.journal.events import Event
from seatrial.units import SECOND_NS

INTERRUPTED = "interrupted"

_GO = {str(Name.TRIAL_START), str(Name.TRIAL_RESUME)}
_STOP = {  # what is said of each, where it gives no reason
    str(Name.TRIAL_PAUSE): "paused",
    str(Name.TRIAL_CANCEL): "cancelled",
    str(Name.TRIAL_ABANDON): "given up",
    str(Name.TRIAL_END): "the trial ended",
}
TURNS = frozenset(_GO | set(_STOP))


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


def sub_phases(turns: Iterable[Event], runs: Iterable[RunHistory], now: int) -> list[SubPhase]:
    """The sub-phases by the ``TURNS`` of a journal, in their order."""
    stretches = _stretches(turns)
    starts = [start for start, _, _ in stretches]
    accepted = [0] * len(stretches)
    for run in runs:
        if run.over and run.passed and stretches:
            accepted[max(0, bisect_right(starts, run.judged) - 1)] += 1
    return [
        SubPhase(
            number=i + 1,
            start=start,
            end=end,
            clock=max(0, (now if end is None else min(end, now)) - start) / SECOND_NS,
            ended_by=why,
            accepted=accepted[i],
        )
        for i, (start, end, why) in enumerate(stretches)
    ]


def _stretches(turns: Iterable[Event]) -> list[tuple[int, int | None, str]]:
    found: list[tuple[int, int | None, str]] = []
    for event in turns:
        goes = event.event in _GO
        if found and found[-1][1] is None:
            start = found[-1][0]
            why = INTERRUPTED if goes else _why(event)
            found[-1] = (start, max(start, event.time), why)
        if goes:
            found.append((event.time, None, ""))
    return found


def _why(event: Event) -> str:
    """What stopped a stretch. Why a trial was given up is a person's bare words."""
    said = _STOP[event.event]
    if event.event == Name.TRIAL_ABANDON and event.text:
        return f"{said}: {event.text}"
    return event.text or said
