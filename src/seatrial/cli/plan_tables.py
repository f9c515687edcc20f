"""Tables of what people recorded about a plan: issues, what happened, evidence."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.acceptance.evidence_status import EvidenceStatus
from seatrial.acceptance.plan_records import Issue, RecordedEntry
from seatrial.cli.query_common import show_time
from seatrial.cli.tables import TextTable


def issues_table(issues: Sequence[Issue]) -> TextTable:
    """Return the issues, a row for each."""
    rows = TextTable("issue> | state | severity | component | owner~ | opened | text~")
    for one in issues:
        where = [one.text, one.nodes, ", ".join(one.runs), *one.comments]
        text = "; ".join(filter(None, where))
        words = (one.state, one.severity, one.component, one.owner, show_time(one.opened))
        rows.add(one.issue, *words, text)
    return rows


def entries_table(entries: Sequence[RecordedEntry]) -> TextTable:
    """Return milestones, replaced parts and incidents, in the order of their times."""
    rows = TextTable("at | what | nodes | by~ | text~")
    for one in entries:
        rows.add(show_time(one.at), one.kind, one.nodes, ", ".join(one.by), one.text)
    return rows


def evidence_line(component: str, one: EvidenceStatus) -> str:
    """Return a document with who signed it, and whether it is as it was signed for."""
    if one.state == "awaited":
        return f"evidence of {component}: {one.document} is awaited"
    signed = f"signed by {one.signed_by} on {one.signed_on}"
    file = one.document if one.file == one.document else f"{one.document} ({one.file})"
    now = {"changed": "; it CHANGED since it was signed for", "not here": "; it is not here"}
    return f"evidence of {component}: {file}, {signed}{now.get(one.state, '')}"
