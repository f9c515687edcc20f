"""The event that keeps what system logs had in the window of a run."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct, field

from seatrial.journal.events import RunEvent, Whole

MOST_SECONDS = 500  # findings of a run that are told by second
MOST_SHAPES = 400  # of a run


class SourceRead(Struct, frozen=True, omit_defaults=True):
    """What was read of one source, in the window from ``since`` to ``until`` (s since 1970)."""

    name: str
    since: Whole = 0
    until: Whole = 0
    #: Lines of the nodes of the run, and their bytes.
    lines: Whole = 0
    size: Whole = 0
    #: What could not be read, or was left out, and why.
    faults: list[str] = []


class LinesFound(Struct, frozen=True, omit_defaults=True):
    """Lines of a node that match a rule in one second; of a later hour with more such seconds than
    are kept, those of the whole hour."""

    source: str
    node: str
    rule: str
    #: In s since 1970.
    second: Whole = 0
    lines: Whole = 1
    #: Whether other runs may have counted some of the same lines.
    of_hour: bool = False


class ShapeSeen(Struct, frozen=True, omit_defaults=True):
    """Lines of one shape, and their nodes (folded) where these are not all nodes of the run."""

    shape: str
    lines: Whole = 1
    nodes: str = ""


class LogsRead(RunEvent, frozen=True, kw_only=True, tag="logs_read"):
    """System logs were read in the window of a run, after it had ended: so many ``lines`` of its
    nodes. ``findings`` are lines that match rules; ``shapes`` count all lines by their shape, whose
    texts are in ``texts`` of this or an earlier event of the trial; ``more_lines`` are of further
    shapes. The lines themselves are not kept, as they may name users."""

    number: ClassVar[int] = 216
    is_late: ClassVar[bool] = True
    follows_verdict: ClassVar[bool] = True
    lines: Whole = field(default=0, name="value")
    text: str = ""
    sources: list[SourceRead] = []
    findings: list[LinesFound] = []
    shapes: list[ShapeSeen] = []
    texts: dict[str, str] = {}
    more_lines: Whole = 0
