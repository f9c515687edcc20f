"""The judgements about a trial that its report shows."""

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
    """The judgements about a trial.

    ``pairs``: results of the criterion slowdown, first that of all cases together.
    """

    status: Status
    pairs: list[Result]
    varied: Variability
    scaled: list[Scaled]
    notes: list[Note]
    outages: list[Span]
    failed: Table
    expected: Table
    conditions: list[Table]
