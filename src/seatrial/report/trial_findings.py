"""The judgements about a trial that its report shows."""

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
    """The judgements about a trial.

    ``pairs``: results of the criterion slowdown, first that of all cases together.
    """

    status: Status
    pairs: list[Result]
    varied: Variability
    scaled: list[Scaled]
    notes: list[Note]
    outages: list[ShadedSpan]
    failed: Table
    expected: Table
    conditions: list[Table]
