"""What a report says, whatever its form: the shape of the JSON, and what HTML and Markdown show.

Numbers are as they were computed; a column says how they are shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from seatrial.acceptance.criteria import Overall
from seatrial.acceptance.status import Status, TestStatus
from seatrial.journal.codes import RECALLED
from seatrial.plan.model import Evidence, Waiver
from seatrial.report.checksums import File
from seatrial.store.export import iso, to_json
from seatrial.units import SECOND_NS, count, show_number, show_seconds

SHAPE: Final = 1  # of the JSON; raised when something that is there changes its meaning
MAX_FIGURE_ROWS: Final = 200  # of the data of a figure

Kind = Literal["text", "count", "number", "share", "per cent", "seconds", "time"]
Cell = str | int | float | None


class ReportColumn(Struct, frozen=True):
    """A column and how its cells are shown: "share" is a part of 1, "seconds" a duration, "time" in
    ns since the epoch."""

    title: str
    kind: Kind = "text"
    unit: str = ""

    @property
    def right(self) -> bool:
        return self.kind not in ("text", "time")

    @property
    def words(self) -> str:
        return f"{self.title} ({self.unit})" if self.unit not in ("", "1") else self.title


class Table(Struct, frozen=True):
    """Rows of cells; ``total`` is how many rows there are in all, of which these are the first."""

    title: str
    columns: list[ReportColumn]
    rows: list[list[Cell]]
    total: int
    about: str = ""

    @property
    def left_out(self) -> int:
        return self.total - len(self.rows)

    @property
    def filled(self) -> list[tuple[int, ReportColumn]]:
        """The columns that have something in them, with their positions: what is shown."""
        return [
            (i, column)
            for i, column in enumerate(self.columns)
            if any(row[i] not in (None, "") for row in self.rows)
        ]


class ReportFigure(Struct, frozen=True):
    """A figure: its data as a table, and its drawing (SVG; not in the JSON). ``notes`` are what is
    to be read with it; a ``narrow`` one stands beside another."""

    title: str
    about: str
    table: Table
    drawing: str
    notes: list[str] = []
    narrow: bool = False


class ReportComponent(Struct, frozen=True, kw_only=True):
    """One trial: a component of a plan in one phase, or a trial of a suite. ``status`` is what
    `seatrial accept --status --format json` gives; ``begun`` and ``ended`` in ns."""

    title: str
    tag: str
    about: str
    seed: int
    created: int
    begun: int | None
    ended: int | None
    remarks: list[str]
    status: Status
    waivers: list[Waiver]
    evidence: list[Evidence]
    tables: list[Table]
    figures: list[ReportFigure]
    excluded: list[Table]
    versions: list[Table]


class Other(Struct, frozen=True, kw_only=True):
    """A component of the plan without a trial: it has not begun, or rests on evidence alone."""

    title: str
    state: str
    about: str
    evidence: list[Evidence]
    waivers: list[Waiver]


class ReportMachine(Struct, frozen=True):
    """A machine as its trials knew it: facts by name."""

    name: str
    about: str
    facts: list[tuple[str, str]]
    tables: list[Table]


class Report(Struct, frozen=True, kw_only=True):
    """The whole report. ``verdict`` is that of all criteria together;
    ``made`` in ns; ``assumed`` is what rehearsals assume, in their plans' words."""

    report: int = SHAPE
    title: str
    about: str
    plan: str
    made: int
    made_by: str
    version: str
    rehearsed: bool
    assumed: list[str]
    verdict: Overall
    complete: bool
    remarks: list[str]
    components: list[ReportComponent]
    others: list[Other]
    machines: list[ReportMachine]
    versions: list[Table]
    files: list[File]

    @property
    def name(self) -> str:
        """What tells this report from others, on each sheet of paper."""
        from seatrial.report.checksums import block, digest

        return digest(f"{self.made}\n{block(self.files)}".encode())[:12]


def bounded(
    title: str,
    columns: Sequence[ReportColumn],
    rows: Sequence[Sequence[Cell]],
    about: str = "",
    most: int = MAX_FIGURE_ROWS,
) -> Table:
    """A table of the first ``most`` rows, which knows how many there are."""
    return Table(title, list(columns), [list(row) for row in rows[:most]], len(rows), about)


def sentence(report: Report) -> str:
    """How the criteria stand, in a sentence; "" where there are none."""
    states = [each[0].state for part in report.components for each in part.status.criteria]
    if not states:
        return ""
    waiting = sum(other.state == "not begun" for other in report.others)
    if set(states) == {"met"} and not waiting:
        return (
            f"All {len(states)} criteria are met." if len(states) > 1 else "The criterion is met."
        )
    parts = [
        f"{states.count(state)} {state}"
        for state in ("not met", "undecided", "met", "waived")
        if states.count(state)
    ]
    said = f"Of {len(states)} criteria {', '.join(parts)}."
    return f"{said} {count(waiting, 'component')} not begun." if waiting else said


def ended_by_verdict(test: TestStatus) -> dict[str, int]:
    """Return how many runs of a test ended with which verdict. Recalled runs never started, so they
    are left out."""
    return {name: number for name, number in test.verdicts.items() if name != RECALLED.name}


def ended_runs(part: ReportComponent) -> int:
    """Return how many of its runs ended."""
    return sum(sum(ended_by_verdict(test).values()) for test in part.status.parts)


def not_passed(part: ReportComponent) -> int:
    """Return how many of its runs ended and did not pass, retried ones among them."""
    return ended_runs(part) - sum(test.accepted for test in part.status.parts)


# ---- how cells are shown ------------------------------------------------------------------


def shown(value: Cell, kind: Kind = "text") -> str:
    """A cell as people read it; "" for none."""
    if value is None or value == "":
        return ""
    if isinstance(value, str):
        return value
    if kind == "count":
        return f"{value:,.0f}"
    if kind == "share":
        return per_cent(100 * value)
    if kind == "per cent":
        return f"{round(value, 2) + 0.0:+.2f} %"
    if kind == "seconds":
        return show_seconds(value)
    if kind == "time":
        return moment(int(value))
    return show_number(value)


def per_cent(value: float) -> str:
    """Per cent, to four digits; what is less than all is never shown as 100."""
    digits = 4 if value == 100 or f"{value:.4g}" != "100" else 8
    return f"{value:.{digits}g} %"


def moment(time_ns: int | None) -> str:
    """A time in UTC, to the second; "" for none."""
    if time_ns is None or time_ns < 0:
        return ""
    return iso(time_ns // SECOND_NS * SECOND_NS)[:19].replace("T", " ")


# ---- as JSON ------------------------------------------------------------------------------


def as_json(report: Report) -> str:
    """The report as JSON text; its shape is told in docs/report.md."""
    record: dict[str, Any] = msgspec.to_builtins(report)
    record["name"] = report.name
    record["made"] = iso(report.made)
    for part in record["components"]:
        for key in ("created", "begun", "ended"):
            part[key] = None if part[key] is None else iso(part[key])
        for figure in part["figures"]:
            del figure["drawing"], figure["narrow"]
            _timed(figure["table"])
        for table in (*part["tables"], *part["excluded"], *part["versions"]):
            _timed(table)
    return to_json(record)


def _timed(table: dict[str, Any]) -> None:
    """Times of a table as ISO 8601."""
    for i, column in enumerate(table["columns"]):
        if column["kind"] == "time":
            for row in table["rows"]:
                row[i] = iso(row[i]) if isinstance(row[i], int) else row[i]
