"""What ``acceptance`` and ``studies`` found about a trial, for the parts of its report."""

from __future__ import annotations

from typing import NamedTuple

from seatrial.acceptance.criteria import Result
from seatrial.acceptance.status import Status
from seatrial.draw import ShadedSpan
from seatrial.report.content import Table
from seatrial.studies.note_file import Note
from seatrial.studies.scaling import ScalingTable as Scaled
from seatrial.studies.variability import Variability


class TrialFindings(NamedTuple):
    """What was found about a trial: ``pairs`` are the results of slowdown, first that on all
    cases; ``failed``, ``expected`` and ``conditions`` are tables."""

    status: Status
    pairs: list[Result]
    varied: Variability
    scaled: list[Scaled]
    notes: list[Note]
    outages: list[ShadedSpan]
    failed: Table
    expected: Table
    conditions: list[Table]
