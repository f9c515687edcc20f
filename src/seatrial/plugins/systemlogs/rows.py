"""The tables of the store that hold what system logs had in the windows of runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from msgspec import Struct

from seatrial.plugins.systemlogs.events import LogsRead
from seatrial.results.store.tables import Column, StoredRun, Table, columns_of


class ReadRow(Struct, frozen=True):
    """A source that was read for a run. ``faults`` stand on lines of their own."""

    trial: int
    run: int
    source: str
    since: int
    until: int
    lines: int
    size: int
    faults: str


class FindingRow(Struct, frozen=True):
    """Lines of a node that match a rule in one second, as a run saw them."""

    trial: int
    run: int
    source: str
    node: str
    rule: str
    second: int
    lines: int


class ShapeRow(Struct, frozen=True):
    """Lines of one shape in the window of a run; those of all shapes that are not kept have the
    shape ""."""

    trial: int
    run: int
    shape: str
    lines: int
    nodes: str


class TextRow(Struct, frozen=True):
    """The text of a shape."""

    trial: int
    shape: str
    text: Annotated[str, Column(sql="TEXT")]


READS = Table("systemlogs_reads", columns_of(ReadRow), primary_key="run, source")
FINDINGS = Table(
    "systemlogs_findings",
    columns_of(FindingRow),
    primary_key="run, source, node, rule, second",
)
SHAPES = Table("systemlogs_shapes", columns_of(ShapeRow), primary_key="run, shape")
TEXTS = Table("systemlogs_texts", columns_of(TextRow), primary_key="trial, shape")


def reads(run: StoredRun, event: LogsRead) -> Iterator[ReadRow]:
    for one in event.sources:
        about = one.since, one.until, one.lines, one.size, "\n".join(one.faults)
        yield ReadRow(run.trial, run.id, one.name, *about)


def findings(run: StoredRun, event: LogsRead) -> Iterator[FindingRow]:
    for one in event.findings:
        where = one.source, one.node, one.rule
        yield FindingRow(run.trial, run.id, *where, one.second, one.lines)


def shapes(run: StoredRun, event: LogsRead) -> Iterator[ShapeRow]:
    for one in event.shapes:
        yield ShapeRow(run.trial, run.id, one.shape, one.lines, one.nodes)
    if event.more_lines:
        yield ShapeRow(run.trial, run.id, "", event.more_lines, "")


def texts(run: StoredRun, event: LogsRead) -> Iterator[TextRow]:
    for shape, text in event.texts.items():
        yield TextRow(run.trial, shape, text)
