"""Make the tables of a component: node-hours, the mix, sub-phases, variability, notes."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from seatrial.acceptance.beside import beside
from seatrial.acceptance.status import Status
from seatrial.report.content import Cell, ReportComponent, Table, bounded, moment
from seatrial.studies.note_file import Note
from seatrial.studies.variability import Variability
from seatrial.units import SECOND_NS, show_unit

MAX_ROWS: Final = 500  # of a table that belongs to no figure
SHORT: Final = 16  # digits of a checksum in a table


def phases(parts: Sequence[ReportComponent]) -> list[Table]:
    """Return the table of the phases of a plan with their dates, if it has any."""
    rows: list[list[Cell]] = []
    for phase in dict.fromkeys(part.status.phase for part in parts if part.status.phase):
        some = [part for part in parts if part.status.phase == phase]
        begun = [part.begun for part in some if part.begun is not None]
        ended = [part.ended for part in some if part.ended is not None]
        last = max(ended) if len(ended) == len(some) else None
        names = ", ".join(part.status.component for part in some)
        nodes = max(part.status.nodes for part in some)
        rows.append([phase, names, nodes, min(begun, default=None), last])
    columns = "phase | components | nodes: count | from (UTC): time | to (UTC): time"
    found = [bounded("Phases", columns, rows)] if rows else []
    uses: list[list[Cell]] = [
        [use.words, use.nodes, round(use.node_hours, 1), use.utilisation]
        for use in beside([part.status for part in parts])
    ]
    columns = "components | nodes: count | node-hours: number | accepted: share"
    about = "by one clock: the nodes of each count until the last of them ended"
    return found + ([bounded("Components beside each other", columns, uses, about)] if uses else [])


def node_hours(status: Status) -> Iterator[Table]:
    """Yield the table of node-hours by use, from the criterion on utilisation."""
    results = [each[0] for each in status.criteria if each[0].criterion == "utilisation"]
    if not results:
        return
    numbers = results[0].numbers
    available = numbers.get("available node-hours")
    if not isinstance(available, int | float) or not available:
        return
    rows = (
        (name.removesuffix(" node-hours"), hours, hours / available)
        for name, hours in numbers.items()
        if name.endswith(" node-hours") and isinstance(hours, int | float)
    )
    columns = "use | node-hours: number | of those available: share"
    yield bounded("Where node-hours went", columns, rows)


def node_shares(status: Status) -> Iterator[Table]:
    """Yield the table of the planned and the achieved share of each test of a mix."""
    found = status.node_shares
    if found is None or found.unclaimed is None:
        return
    rows: list[Sequence[Cell]] = []
    for each in found.tests:
        points = 100 * (each.achieved - (each.planned or 0.0))
        planned = "fill" if each.only_fills else each.planned
        rows.append((each.test, planned, each.achieved, points, each.node_hours))
    rows.append(("no run", found.unclaimed, found.unused, None, None))
    columns = (
        "test | planned: share | achieved: share | difference: number, points | node-hours: number"
    )
    about = (
        "Of the node-hours that were available: what the plan gives to each test, and what its "
        "jobs held, whatever their verdicts."
    )
    yield bounded("The mix, planned and achieved", columns, rows, about)


def sub_phases(status: Status) -> Iterator[Table]:
    """Yield the table of the sub-phases, if there are several or it is of a plan."""
    parts = status.sub_phases
    if len(parts) < 2 and not status.plan:
        return
    columns = (
        "sub-phase: count | from (UTC): time | to (UTC): time | clock: seconds | passed: count"
        " | ended by"
    )
    rows = (
        (each.number, each.start, each.end, each.clock, each.accepted, each.ended_by)
        for each in parts
    )
    yield bounded("Sub-phases", columns, rows, "the stretches between pauses and interruptions")


def spreads(varied: Variability) -> Table:
    columns = (
        "test | metric | unit | n: count | mean: number | sd: number | CV: share"
        " | median: number | MAD: number | min: number | max: number | excluded | hidden in it"
    )
    rows: list[list[Cell]] = []
    for row in varied.rows:
        one = row.spread
        unit = show_unit(row.unit, "{}")
        excluded = ", ".join(f"{n} {rule}" for rule, n in row.excluded.items())
        hidden = "; ".join(row.hidden)
        numbers = [one.mean, one.deviation, one.cv, one.median, one.mad, one.low, one.high]
        rows.append([row.kind, row.metric, unit, one.n, *numbers, excluded, hidden])
    about = (
        "Over the runs with a right answer; sd: standard deviation (n - 1), CV: sd over mean, "
        "MAD: median absolute deviation."
    )
    return bounded("Variability", columns, rows, about, MAX_ROWS)


def shared(varied: Variability) -> Table:
    """Return the spans of time, nodes and groups with more outliers than chance explains."""
    columns = "shared | which | runs: count | stand out: count | by chance: number | p: number"
    rows: list[list[Cell]] = []
    for span in varied.spans:
        first, last = (moment(round(at * SECOND_NS)) for at in (span.first, span.last))
        numbers = (span.runs, span.bad, span.expected, span.p)
        rows.append(["started from", f"{first} to {last} UTC", *numbers])
    for one in varied.suspects.suspects:
        rows.append([one.kind, ", ".join(one.names[:8]), one.runs, one.bad, one.expected, one.p])
    about = (
        "p: the chance of as many in any span, node or group at all. Of nodes that were always "
        "together none can be told from the others."
    )
    return bounded("What runs that stand out share", columns, rows, about, MAX_ROWS)


def places(varied: Variability) -> Table:
    """Return the tests whose times go with where their nodes were in the network."""
    columns = (
        "test | elapsed goes with | from: number | to: number | ratio: number | low: number"
        " | high: number | runs: count | p: number | and with"
    )
    rows: list[list[Cell]] = []
    for one in varied.places.trends:
        numbers = (one.start, one.end, one.ratio, one.low, one.high, one.runs, one.p)
        rows.append([one.test, one.covariate, *numbers, ", ".join(one.also)])
    about = (
        "ratio: of the times at the two ends, with its interval of 95 %; p: by permutations, "
        "corrected for all covariates of all tests."
    )
    return bounded("Times and places in the network", columns, rows, about, MAX_ROWS)


def notes_table(notes: Iterable[Note]) -> Table:
    """Return the table of what people noted."""
    rows = (
        (note.time, note.text, f"{note.user}@{note.host}" if note.user else "") for note in notes
    )
    columns = "time (UTC): time | noted | by"
    return bounded("Notes on the machine", columns, rows, "by `seatrial note`", MAX_ROWS)
