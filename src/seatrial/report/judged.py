"""What ``judge`` found about a trial, for the parts of its report."""

from __future__ import annotations

from typing import NamedTuple

from seatrial.draw import Span
from seatrial.judge.criteria import Result
from seatrial.judge.diary import Note
from seatrial.judge.scaling import Table as Scaled
from seatrial.judge.status import Status
from seatrial.judge.variability import Variability
from seatrial.report.content import Table


class Judged(NamedTuple):
    """What ``judge`` found about a trial: ``pairs`` are the results of slowdown, first that on all
    cases; ``failed``, ``expected`` and ``conditions`` are tables."""

    status: Status
    pairs: list[Result]
    varied: Variability
    scaled: list[Scaled]
    notes: list[Note]
    outages: list[Span]
    failed: Table
    expected: Table
    conditions: list[Table]
