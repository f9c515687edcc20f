"""Tables of what people did in an acceptance: items, issues, milestones, parts, incidents.

items(status.items).rows[0]
tables_of(records)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seatrial.acceptance.plan_records import Issue, PlanRecords
from seatrial.plan.checklist import ItemResult, ItemStatus
from seatrial.report.content import Cell, Table, bounded
from seatrial.verify.reading import plain_line


def items(found: Sequence[ItemStatus]) -> Table:
    """Return the items of a checklist, with their results; each replaced or uncounted result has a
    row of its own."""
    rows: list[list[Cell]] = []
    for item in found:
        about = [item.id, item.clause, plain_line(item.text)]
        rows.append([*about, item.bound, item.state, *_cells(item.tick, "")])
        rows += [[*about, "", each.result, *_cells(each, "replaced")] for each in item.earlier]
        rows += [
            [*about, "", each.result, *_cells(each, "does not count")] for each in item.uncounted
        ]
    columns = (
        "item | clause | what | asked | result: state | counts | value | by | recorded by"
        " | when: time | remark | document | SHA-256"
    )
    about_all = "The first result stands; another one replaces it only with a reason."
    return bounded("Items", columns, rows, about_all)


def _cells(tick: ItemResult | None, counts: str) -> list[Cell]:
    if tick is None:
        return [""] * 8
    because = f"because: {tick.why}" if tick.why else ""
    now = f" ({tick.now})" if tick.now not in ("", "as it was") else ""
    return [
        counts,
        tick.shown,
        plain_line(", ".join(tick.by)),
        plain_line(tick.user),
        tick.time,
        plain_line("; ".join(filter(None, (tick.comment, because)))),
        plain_line(tick.document) + now,
        tick.sha256,
    ]


def issues(found: Sequence[Issue], title: str = "Issues") -> Table:
    """Return the issues, a row for each."""
    rows: list[list[Cell]] = [
        [
            each.issue,
            each.state,
            each.severity,
            plain_line(each.text),
            each.component,
            plain_line(each.owner),
            each.nodes,
            plain_line(", ".join(each.runs)),
            plain_line(", ".join(each.opened_by)),
            each.opened,
            plain_line("; ".join(each.comments)),
        ]
        for each in found
    ]
    columns = (
        "issue: count | state | severity | what | component | owner | nodes | runs | opened by"
        " | opened: time | remarks"
    )
    return bounded(title, columns, rows)


def entries(records: PlanRecords) -> Table:
    """Return milestones, replaced parts and incidents, in the order of their times."""
    rows: list[list[Cell]] = [
        [
            each.at,
            each.kind,
            plain_line(each.text),
            each.nodes,
            plain_line(", ".join(each.by)),
            plain_line(each.user),
        ]
        for each in records.entries
    ]
    columns = "when: time | kind | what | nodes | by | recorded by"
    return bounded("Milestones, replaced parts, incidents", columns, rows)


def tables_of(records: PlanRecords) -> Iterator[Table]:
    """Yield the tables of a plan's records that have rows."""
    closed = [each for each in records.issues.values() if not each.is_open]
    for table in (issues(closed, "Issues that were closed"), entries(records)):
        if table.rows:
            yield table
