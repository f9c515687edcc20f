"""The table from the clauses of a contract to requirements, tests and results.

tables = traceability(trials, others)       # none, where nothing has an id, a clause or a text
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from seatrial.acceptance.criteria import Result, criteria_of, label
from seatrial.acceptance.criteria.waivers import covered
from seatrial.acceptance.evidence_status import words_of
from seatrial.lazy import regex
from seatrial.plan.checklist import ItemStatus
from seatrial.plan.component_tests import fits
from seatrial.plan.model import Component
from seatrial.report.content import Cell, Other, ReportComponent, Table, bounded
from seatrial.units import listed

MAX_TESTS = 6  # that a row names
_NUMBER = regex(r"([0-9]+)")
COLUMNS = (
    "clause | id | requirement | component | by | tests | asked | found | n: count | state: state"
)


class JudgedComponent(NamedTuple):
    """A component as its trial was made with it, and what the report has of it."""

    written: Component
    part: ReportComponent


def traceability(judged: Sequence[JudgedComponent], others: Sequence[Other]) -> list[Table]:
    """Return the table of all that was asked, in the order of the clauses, those without one last;
    none if no criterion, waiver or evidence has an id or a clause."""
    rows = [row for one in judged for row in _of_trial(one)]
    rows += [row for other in others for row in _of_other(other)]
    if not any(row[0] or row[1] for row in rows):
        return []
    rows.sort(key=lambda row: (not row[0], _natural(str(row[0]))))
    about = "What the contract asks for, by which tests and documents it was shown, and the result."
    return [bounded("From clause to result", COLUMNS, rows, about)]


def _natural(text: str) -> list[tuple[int, str]]:
    """Return a key by which clause 4.10 follows 4.9."""
    parts = _NUMBER.split(text)
    return [(int(part), "") if part.isdigit() else (0, part) for part in parts if part]


def _of_trial(one: JudgedComponent) -> Iterator[list[Cell]]:
    tests = [part.test for part in one.part.status.parts]
    asked = criteria_of(one.written)
    for criterion, results in zip(asked, one.part.status.criteria, strict=False):
        found: Result = results[0]
        about = listed([name for name in tests if fits(criterion.tests, name)], MAX_TESTS)
        yield [
            found.clause,
            found.id,
            found.about,
            one.part.title,
            found.label,
            about,
            found.bound,
            found.shown,
            found.n,
            found.words,
        ]
    yield from _of_items(one.part.title, one.part.status.items)
    yield from _of_papers(one.part)


def _of_items(title: str, items: Iterable[ItemStatus]) -> Iterator[list[Cell]]:
    for item in items:
        result = item.tick
        found = result.shown if result else ""
        by = f"by {', '.join(result.by)}" if result else ""
        about = f"{item.text}: {item.about}" if item.about else item.text
        shown = ", ".join(filter(None, (found, by)))
        yield [item.clause, item.id, about, title, "item", "", item.bound, shown, None, item.state]


def _of_other(other: Other) -> Iterator[list[Cell]]:
    for asked in other.criteria:
        about = listed(asked.tests, MAX_TESTS)
        named = [asked.clause, asked.id, asked.about, other.title, label(asked)]
        yield [*named, about, "", "", None, other.state]
    yield from _of_papers(other)


def _of_papers(part: ReportComponent | Other) -> Iterator[list[Cell]]:
    title = part.title
    for paper in part.evidence:
        signed = f"signed by {paper.signed_by} on {paper.signed_on}" if paper.signed_by else ""
        shown = [paper.clause, paper.id, paper.about, title, f"evidence {paper.document}"]
        yield [*shown, "", "a document", signed, None, words_of(paper)]
    for each in part.waivers:
        agreed = f"by {each.by} on {each.on}"
        about = each.about or each.reason
        named = [each.clause, each.id, about, title, f"waiver of {covered(each)}"]
        state = "waiver not needed" if each in part.unneeded else "waiver"
        yield [*named, listed(each.tests, MAX_TESTS), "", agreed, None, state]
