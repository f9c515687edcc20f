"""The content of a report: the structure of its JSON, which HTML and Markdown show.

Numbers are unrounded; a column says how they are shown.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar, Final, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from seatrial.escaping import plain_line
from seatrial.model.codes import KNOWN, RECALLED
from seatrial.model.plan import Criterion, Waiver
from seatrial.results.criteria.mix import (
    OverallState,
    exclusion_words,
    first_of,
    missed_words,
    overall,
    waived_words,
)
from seatrial.results.criteria.view import Result, is_unneeded
from seatrial.results.records import EvidenceStatus, Issue
from seatrial.results.status import Status, TestStatus
from seatrial.results.store.export import iso, to_json
from seatrial.show.page import Cell, Column, Kind, Link, State, Table
from seatrial.show.report.sign import File, block, digest
from seatrial.show.text import cell_text
from seatrial.units import SECOND_NS, count

SHAPE: Final = 2  # version of the JSON; raised when the meaning of an existing key changes
FEW_RUNS: Final = 5  # a figure of fewer shows nothing
MAX_ROWS: Final = 200  # of a table, such as the data of a figure

Decision = Literal["", "accepted", "accepted with reservations", "rejected"]


class Listing(Struct, frozen=True):
    """A text in full, such as a script, for the annex."""

    title: str
    text: str


class ReportFigure(Struct, frozen=True):
    """A figure: its drawing (SVG, not in the JSON), and its data as a table.

    ``notes``: remarks below it. ``narrow``: it stands beside another figure.
    """

    title: str
    about: str
    table: Table
    drawing: str
    notes: list[str] = []
    narrow: bool = False


class ReportComponent(Struct, frozen=True, kw_only=True):
    """One trial: a component of a plan in one phase, or a trial of a suite."""

    title: str
    tag: str
    about: str
    #: Of a rehearsal.
    seed: int
    #: This and the next two in ns.
    created: int
    begun: int | None
    ended: int | None
    remarks: list[str]
    #: What `seatrial accept status --format json` shows.
    status: Status
    waivers: list[Waiver]
    evidence: list[EvidenceStatus]
    #: Results.
    tables: list[Table]
    figures: list[ReportFigure]
    #: What was excluded, and why.
    excluded: list[Table]
    #: Sizes of tests, and how they were launched.
    ran: list[Table]
    #: Of tests and environments, with hashes.
    versions: list[Table]

    @property
    def unneeded(self) -> list[Waiver]:
        """The waivers without which all that they cover was met."""
        return [each for each in self.waivers if is_unneeded(each, self.status.criteria)]


class Other(Struct, frozen=True, kw_only=True):
    """A component of the plan without a trial: not begun, or shown by evidence alone, which may be
    awaited, or changed since it was signed for."""

    title: str
    state: str
    about: str
    evidence: list[EvidenceStatus]
    waivers: list[Waiver]
    criteria: list[Criterion] = []
    unneeded: ClassVar[Sequence[Waiver]] = ()


class ReportMachine(Struct, frozen=True):
    """A machine as its trials knew it; ``facts``: (name, text)."""

    name: str
    about: str
    facts: list[tuple[str, str]]
    tables: list[Table]


class Report(Struct, frozen=True, kw_only=True):
    """The whole report."""

    #: The version of its JSON.
    report: int = SHAPE
    title: str
    about: str
    #: The name of the plan, "" where the trials are of several.
    plan: str
    #: When, in ns.
    made: int
    #: A person.
    made_by: str
    #: The person's, "" if it is not known.
    organisation: str
    #: Of Seatrial.
    version: str
    rehearsed: bool
    #: The assumptions of rehearsals, in the words of their plans.
    assumed: list[str]
    #: Of all criteria together.
    verdict: OverallState
    #: Whether all components ended, with all of their documents.
    complete: bool
    remarks: list[str]
    #: What is awaited, items that failed, documents that changed.
    notices: list[str]
    #: Those that are open.
    issues: list[Issue]
    #: Of what people recorded.
    records: list[Table]
    #: From clauses of the contract to results, if the plan has any.
    clauses: list[Table]
    phases: list[Table]
    components: list[ReportComponent]
    others: list[Other]
    machines: list[ReportMachine]
    tests: list[Table]
    versions: list[Table]
    #: The plan and the scripts.
    annexes: list[Listing]
    #: What it rests on, with checksums.
    files: list[File]
    #: What people decided, "" before they did.
    decision: Decision
    reservations: list[str]

    @property
    def decided(self) -> str:
        """The decision as the signed block has it."""
        if not self.reservations:
            return self.decision
        return f"{self.decision} ({count(len(self.reservations), 'reservation')})"

    @property
    def name(self) -> str:
        """Return a short hash that identifies this report on each printed page."""
        return digest(f"{self.made}\n{block(self.files, self.decided)}".encode())[:12]


def columns_of(*written: str | tuple[str, Kind] | tuple[str, Kind, str]) -> list[Column]:
    """Return columns: each by its title, where it has not texts also by its kind and unit."""
    return [
        Column(one) if isinstance(one, str) else Column(*one[:2], unit="".join(one[2:]))
        for one in written
    ]


def bounded(
    title: str,
    columns: Sequence[Column],
    rows: Iterable[Sequence[Cell]],
    about: str = "",
    max_rows: int = MAX_ROWS,
) -> Table:
    """Return a table of the first rows, whose texts become plain lines, with the number of all."""
    found = list(rows)
    shown = [
        [plain_line(cell) if isinstance(cell, str) else cell for cell in row]
        for row in found[:max_rows]
    ]
    return Table(columns, shown, title, len(found), about=about)


def reported(title: str, table: Table, about: str = "") -> Table:
    """Return a table of a trial as a report has it: its times in UTC, its cells as texts."""
    columns = [
        replace(each, title=f"{each.title} (UTC)", kind="time") if each.kind == "clock" else each
        for each in table.columns
    ]
    rows = [[_words(cell) for cell in row] for row in table.rows]
    return bounded(title, columns, rows, about)


def _words(cell: Cell) -> Cell:
    if isinstance(cell, Link):
        return cell.text
    if isinstance(cell, State):
        return cell.word
    if isinstance(cell, Sequence) and not isinstance(cell, str):
        return ", ".join(str(_words(each)) for each in cell)
    return cell


def filled(*tables: Table) -> list[Table]:
    """Return the tables that have rows."""
    return [table for table in tables if table.rows]


def titled(component: str, phase: str) -> str:
    """Return the title of a component in a phase."""
    return f"{component}, phase {phase}" if phase else component


def sentence(report: Report) -> str:
    """Return the state of the criteria and the tests at fault in one paragraph, "" without
    criteria."""
    return " ".join([state_of_criteria(report), *faulty_tests(report)]).strip()


def state_of_criteria(report: Report) -> str:
    """Return in a few sentences what the criteria say, "" without criteria: what was missed comes
    first, by clause and figure, then what is undecided, then what was waived."""
    several = len(report.components) > 1
    results = [
        (each[0], part.title if several else "")
        for part in report.components
        for each in part.status.criteria
    ]
    if not results:
        return ""
    waiting = sum(other.state == "not begun" for other in report.others)
    words = _by_state(results)
    if waiting == 0 and {one.state for one, _ in results} == {"met"}:
        words = f"All {len(results)} criteria are met" if len(results) > 1 else words
    words += f"{_not_needed([one for one, _ in results])}."
    words += f" {count(waiting, 'component')} not begun." if waiting else ""
    return " ".join([words, *_left_out(report)])


def _by_state(results: Sequence[tuple[Result, str]]) -> str:
    """Return how many criteria are in which state, and name those that are not met."""
    parts = []
    for state in ("not met", "undecided", "waived"):
        in_words = waived_words if state == "waived" else missed_words
        named = [in_words(one, title) for one, title in results if one.state == state]
        if named:
            parts.append(f"{len(named)} {state}: {'; '.join(first_of(named))}")
    if met := sum(one.state == "met" for one, _ in results):
        parts.append(f"{met} met")
    if len(results) == 1:
        return f"The criterion is {parts[0].removeprefix('1 ')}"
    return f"Of {len(results)} criteria {'. '.join(parts)}"


def _not_needed(results: Sequence[Result]) -> str:
    spare = sum(one.state == "met" and one.without_waiver is not None for one in results)
    return f"; {count(spare, 'waiver')} {'was' if spare == 1 else 'were'} not needed" * bool(spare)


def _left_out(report: Report) -> Iterator[str]:
    """Yield what the criteria do not count and would be met less with: excluded runs, and known
    failures."""
    several = len(report.components) > 1
    words = [
        phrase
        for part in report.components
        for each in part.status.criteria
        if each and (phrase := exclusion_words(each[0], part.title if several else ""))
    ]
    if words:
        yield f"By excluded runs alone: {'; '.join(words)}."
    known = sum(overall(part.status.criteria).known for part in report.components)
    if known:
        yield f"Not counted: {count(known, 'known failure')}."


MAX_FAULTS = 3  # of the tests of a component, in words


def faulty_tests(report: Report) -> Iterator[str]:
    """Yield a sentence for each component with a test that was stopped, or never gave a right
    answer."""
    for part in report.components:
        for first, *rest in part.status.criteria:
            if first.criterion == "every_test" and first.numbers.get("at fault"):
                faults = [f"{one.subject} {one.reason}" for one in rest] or [first.reason]
                more = [f"and {count(len(faults) - MAX_FAULTS, 'more test')}"]
                told = faults[:MAX_FAULTS] + (more if len(faults) > MAX_FAULTS else [])
                yield f"In {part.title}: {'; '.join(told)}."


def ended_by_verdict(test: TestStatus) -> dict[str, int]:
    """Return how many runs of a test ended with which verdict. Recalled runs never started, so they
    are left out."""
    return {name: number for name, number in test.verdicts.items() if name != RECALLED.name}


def ended_runs(part: ReportComponent) -> int:
    """Return how many of its runs ended."""
    return sum(sum(ended_by_verdict(test).values()) for test in part.status.parts)


def not_passed(part: ReportComponent) -> int:
    """Return how many of its runs ended and did not pass, retried ones among them; known failures
    are not."""
    parts = part.status.parts
    good = sum(test.accepted + test.verdicts.get(KNOWN.name, 0) for test in parts)
    return ended_runs(part) - good


# ---- cells as text ------------------------------------------------------------------------


def shown(value: Cell, kind: Kind = "text") -> str:
    """Return a cell as text, "" for an empty one."""
    if isinstance(value, int | float) and kind == "count":
        return f"{value:,.0f}"
    if isinstance(value, int | float) and kind == "time":
        return moment(int(value))
    return cell_text(value, kind)


def moment(time_ns: int | None) -> str:
    """Return a time (ns) in UTC, to the second; "" for None."""
    if time_ns is None or time_ns < 0:
        return ""
    return iso(time_ns // SECOND_NS * SECOND_NS)[:19].replace("T", " ")


# ---- as JSON ------------------------------------------------------------------------------


def as_json(report: Report) -> str:
    """Return the report as JSON text, as docs/how-to/report.md describes it."""
    record: dict[str, Any] = _for_json(msgspec.to_builtins(report))
    record["name"] = report.name
    record["made"] = iso(report.made)
    record["sentence"] = sentence(report)
    record["decision"] = report.decided
    for part in record["components"]:
        for key in ("created", "begun", "ended"):
            part[key] = None if part[key] is None else iso(part[key])
        for figure in part["figures"]:
            del figure["drawing"], figure["narrow"]
    return to_json(record)


def _for_json(value: Any) -> Any:
    """Return builtins with each table as it is in the JSON."""
    if isinstance(value, list):
        return [_for_json(each) for each in value]
    if not isinstance(value, dict):
        return value
    if value.keys() >= {"columns", "rows"}:
        return _table(value)
    return {name: _for_json(each) for name, each in value.items()}


def _table(table: dict[str, Any]) -> dict[str, Any]:
    """Return a table without its layout, with times as ISO 8601."""
    columns = [
        {name: each[name] for name in ("title", "kind", "unit")} for each in table["columns"]
    ]
    times = [place for place, column in enumerate(columns) if column["kind"] == "time"]
    for row in table["rows"]:
        for place in times:
            row[place] = iso(row[place]) if isinstance(row[place], int) else row[place]
    return {
        "title": table["title"],
        "columns": columns,
        "rows": table["rows"],
        "total": table["total"],
        "about": table["about"],
    }
