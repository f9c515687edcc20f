"""What was imported, and what was not: spans, and the gaps between them.

    for gap in gaps(store, "hopper", since, until):
        notice(gap.sentence)             # beside each answer about this span

A gap is a span of which nobody was asked: an answer that touches it knows less than it seems to.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

from msgspec import Struct

from seatrial.cli import Folders
from seatrial.cli.query_common import opened, print_page
from seatrial.plugins.usage.archive import IMPORTS, StoredImport
from seatrial.results.store.schema import Store
from seatrial.show.page import Column, Page, Part, Section, Table, Text
from seatrial.show.text import show_minute
from seatrial.units import SECOND_NS, count, show_seconds

NO_IMPORT = "nothing of it was imported; `seatrial usage import` does"


class Gap(NamedTuple):
    """A span of which it is not known what ran, in s."""

    machine: str
    #: By the batch system's name, where the machine has several.
    cluster: str
    since: int
    until: int

    @property
    def name(self) -> str:
        """The machine, with the cluster."""
        return _name(self.machine, self.cluster)

    @property
    def sentence(self) -> str:
        """What is missing, for people."""
        if not self.until:
            return f"{self.name}: {NO_IMPORT}"
        return (
            f"{self.name}: no jobs were imported of {minute(self.since)} to {minute(self.until)} "
            f"({show_seconds(self.until - self.since)}); what ran then is missing here"
        )


def gaps(store: Store, machine: str = "", since: int = 0, until: int = 0) -> list[Gap]:
    """Return the spans between two times (s) of which no import tells what ran on a machine; "": on
    each of which something was imported. ``since`` 0: from the first import's span on; ``until`` 0:
    up to the end of the last one's. A machine of which nothing was imported is one gap, which has
    no end where none was asked for."""
    rows = [row for row in stored_imports(store, machine) if not row.fault]
    if not rows:
        return [Gap(machine, "", since, until)] if machine else []
    return [
        Gap(name, cluster, *span)
        for name, of_machine in groupby(rows, lambda row: row.machine)
        for cluster, spans in _spans_by_cluster(list(of_machine), since, until).items()
        for span in spans
    ]


def _spans_by_cluster(
    rows: Sequence[StoredImport], since: int, until: int
) -> dict[str, list[tuple[int, int]]]:
    """Return the spans that are not covered, of each cluster of a machine."""
    since = since or min(row.since for row in rows)
    until = until or max(row.until for row in rows)
    covered: dict[str, list[tuple[int, int]]] = {}
    for row in rows:
        covered.setdefault(row.cluster, []).append((row.since, row.until))
    return {cluster: uncovered(spans, since, until) for cluster, spans in covered.items()}


def uncovered(covered: Iterable[tuple[int, int]], since: int, until: int) -> list[tuple[int, int]]:
    """Return the parts of a span that no other span covers."""
    left = []
    for first, last in sorted(span for span in covered if span[0] < span[1]):
        if first > since:
            left.append((since, min(first, until)))
        since = max(since, last)
        if since >= until:
            return left
    return [*left, (since, until)] if since < until else left


def stored_imports(store: Store, machine: str = "") -> list[StoredImport]:
    """Return what was imported of a machine, or of all, by the time when it was asked."""
    columns = ", ".join(IMPORTS.names)
    where, values = _of_machine(machine)
    sql = f"SELECT {columns} FROM usage_imports {where} ORDER BY machine, cluster, name"
    return [
        StoredImport(**dict(zip(IMPORTS.names, row, strict=True)))
        for row in store.rows(sql, values)
    ]


def _of_machine(machine: str) -> tuple[str, list[str]]:
    """Return the condition of a query for rows of a machine, and its values; "": of all."""
    return ("WHERE machine = ?", [machine]) if machine else ("", [])


def minute(time: int) -> str:
    """Return a time in s for people, in the local time zone."""
    return show_minute(time * SECOND_NS)


def _name(machine: str, cluster: str) -> str:
    return f"{machine} ({cluster})" if cluster else machine


# ---- seatrial usage imports ----------------------------------------------------------------------


class _ImportSpan(Struct, frozen=True):
    """A span that the imports of one source cover without a gap. Times are in s, ``asked`` (the
    latest) in ns."""

    machine: str
    cluster: str
    source: str
    since: int
    until: int
    asked: int
    imports: int = 0
    jobs: int = 0
    unfinished: int = 0
    rejects: int = 0
    removed: int = 0


def _import_spans(rows: Sequence[StoredImport]) -> list[_ImportSpan]:
    """Return the spans that imports cover, those of one source that touch each other as one. Jobs
    that several imports brought are counted in each."""
    touching: list[list[StoredImport]] = []
    before, until = ("", "", ""), 0
    for row in sorted(rows, key=lambda row: (row.machine, row.cluster, row.source, row.since)):
        source = (row.machine, row.cluster, row.source)
        if source != before or row.since > until:
            touching.append([])
            until = 0
        touching[-1].append(row)
        before, until = source, max(until, row.until)
    return list(map(_span_of, touching))


def _span_of(rows: Sequence[StoredImport]) -> _ImportSpan:
    """Return the span of imports of one source that touch each other, the earliest first."""
    first = rows[0]
    sums = {
        name: sum(getattr(row, name) for row in rows)
        for name in ("jobs", "unfinished", "rejects", "removed")
    }
    return _ImportSpan(
        machine=first.machine,
        cluster=first.cluster,
        source=first.source,
        since=first.since,
        until=max(row.until for row in rows),
        asked=max(row.asked for row in rows),
        imports=len(rows),
        **sums,
    )


def imports_page(store: Store, machine: str = "") -> Page:
    """Return what was imported: spans by machine and source, gaps, and files with faults."""
    rows = stored_imports(store, machine)
    spans = _import_spans([row for row in rows if not row.fault])
    left = gaps(store, machine) if rows or not machine else []
    faults = [row.fault for row in rows if row.fault]
    parts: list[Part] = [Table.of(_SPANS, spans)]
    if left:
        parts.append(Table.of(_GAPS, left, title="Gaps"))
    parts += [Text(f"{fault}; its jobs are left out", "notice") for fault in faults]
    return Page(
        "Imported jobs",
        [Section("Spans", parts)],
        _summary(store, machine, rows, left),
        records=lambda: {"spans": spans, "gaps": [gap._asdict() for gap in left], "faults": faults},
        lines=lambda: _lines(spans, left),
    )


def _summary(store: Store, machine: str, rows: Sequence[StoredImport], left: Sequence[Gap]) -> str:
    if not rows:
        return f"{machine or 'no machine'}: {NO_IMPORT}"
    where, values = _of_machine(machine)
    jobs = store.rows(f"SELECT count(*) FROM usage_jobs {where}", values)[0][0]
    machines = count(len({row.machine for row in rows}), "machine")
    return f"{count(jobs, 'job')} of {machines}, {count(len(left), 'gap')}"


_SPANS = (
    Column("machine", value=lambda span: _name(span.machine, span.cluster)),
    Column("source", value=lambda span: span.source),
    Column("from", "time", lambda span: span.since * SECOND_NS),
    Column("to", "time", lambda span: span.until * SECOND_NS),
    Column("jobs", "count", lambda span: span.jobs),
    Column("not ended", "count", lambda span: span.unfinished or None, spare=2),
    Column("rejected", "count", lambda span: span.rejects or None, spare=1),
    Column("removed", "count", lambda span: span.removed or None, spare=1),
    Column("imports", "count", lambda span: span.imports, spare=4),
    Column("asked", "time", lambda span: span.asked, spare=3),
)
_GAPS = (
    Column("machine", value=lambda gap: gap.name),
    Column("from", "time", lambda gap: gap.since * SECOND_NS),
    Column("to", "time", lambda gap: gap.until * SECOND_NS),
    Column("length", "seconds", lambda gap: gap.until - gap.since),
)


def _lines(spans: Sequence[_ImportSpan], left: Sequence[Gap]) -> Iterable[Sequence[object]]:
    yield "kind", "machine", "cluster", "source", "since", "until", "jobs", "rejects"
    for span in spans:
        yield (
            *("span", span.machine, span.cluster, span.source),
            *(span.since, span.until, span.jobs, span.rejects),
        )
    for gap in left:
        yield "gap", gap.machine, gap.cluster, "", gap.since, gap.until, "", ""


def print_imports(folders: Folders, machine: str, form: str) -> int:
    """Do ``seatrial usage imports``; return the exit code."""
    with opened(folders) as store:
        page = imports_page(store, machine)
    print_page(page, form)
    return 0
