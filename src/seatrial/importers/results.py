"""Results of another tool, before they become a trial.

    run = ImportedRun(test="osu/latency", id="1612137600.12", time=now, code=0)
    run.figures = [ImportedFigure("latency", 1.93, "us", "lower")]

Each reader (``oth/results.py``, ``csv_results.py``, ...) returns them with notes on what it could
not bring; ``imported_trial.py`` writes them.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from seatrial.errors import UsageError
from seatrial.file_model import Scalar
from seatrial.importers.notes import ImportNote
from seatrial.units import listed
from seatrial.verify.references import Reference


class ImportedFigure(NamedTuple):
    """A figure of merit. ``better`` is ``higher``, ``lower`` or ``none``."""

    name: str
    value: float
    unit: str = "1"
    better: str = "none"


class ImportedRun(Struct, kw_only=True, gc=False):
    """A run of another tool. ``id`` is what that tool calls it: with the test it must be there
    once. Times are in ns since the epoch, None where the tool does not know them; ``time`` is the
    first one that it knows. ``code`` is a verdict. ``hosts`` are its nodes, folded; ``nodes``,
    ``tasks`` and ``threads`` (of each task) are numbers, 0 if unknown. ``place`` is the file, with
    the line behind a colon, that has the result."""

    test: str
    id: str
    time: int
    code: int
    app: str = ""
    parameters: dict[str, Scalar] = {}
    toolchain: str = ""
    nodes: int = 0
    tasks: int = 0
    threads: int = 0
    queued: int | None = None
    started: int | None = None
    ended: int | None = None
    judged: int | None = None
    reason: str = ""
    cause: str = ""
    exit_code: int | None = None
    job_id: str = ""
    hosts: str = ""
    path: str = ""
    figures: list[ImportedFigure] = []
    place: str = ""


class ImportedResults(NamedTuple):
    """What a reader found: the runs, what it could not bring, and what the other tool expected of
    their figures. ``machine`` is the name that the results give themselves, "" for none."""

    runs: list[ImportedRun]
    notes: list[ImportNote]
    machine: str
    references: Sequence[Reference] = ()


def machine_among(root: Path, of: str, found: Counter[str], chosen: str) -> str:
    """Return the machine whose results below ``root`` are imported, "" if nothing tells it. Raises
    UsageError if results are of several and none of these is ``chosen``; ``of`` is the tool's word
    for machines."""
    if len(found) > 1 and chosen not in found:
        names = [f"{name} ({number})" for name, number in found.most_common()]
        raise UsageError(
            f"{root}: has results of several {of}, {listed(names, 5)}; choose one with --machine"
        )
    return chosen or next(iter(found), "")
