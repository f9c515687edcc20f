"""Pages of the server: what others ran, as hours, waits, applications, failures, and its imports.

Each answer is the `Page` that ``seatrial usage`` prints. What names people is told of a machine
only if its file says so (``usage: {names_on_pages: true}``): users, accounts, the names of jobs and
of programs, and where files lie.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple, cast

from msgspec.structs import replace

from seatrial.errors import UsageError
from seatrial.plugins.usage import NEWS
from seatrial.plugins.usage.answer_page import usage_page
from seatrial.plugins.usage.attributes import ATTRIBUTES, MONTH, context_of
from seatrial.plugins.usage.document import Answers
from seatrial.plugins.usage.gaps import imports_page
from seatrial.plugins.usage.questions import Measure, Question, parse_by, parse_condition
from seatrial.plugins.usage.settings import settings_of
from seatrial.results.store.schema import Store
from seatrial.show.page import Link, Page
from seatrial.show.web.page import BadQuery, PageQuery
from seatrial.show.web.state.server_state import ServerState
from seatrial.show.web.study_view import Field, StudyView
from seatrial.units import SECOND_NS

NAMING = frozenset({"user", "account"})
"""What jobs are told apart by that names people."""

MEASURES: tuple[Measure, ...] = ("hours", "jobs", "users", "waits", "failures", "energy")
TOP = 12
MONTHS = 12

UNNAMED = (
    "names are not shown here; `usage: {names_on_pages: true}` in the machine's file shows them, "
    "and `seatrial usage` on a terminal does"
)
NOTHING = (
    "Nothing is known yet of what others ran. `seatrial usage import sacct -m MACHINE` brings in "
    "the jobs of a cluster with Slurm; `seatrial usage import --help` lists all sources."
)


class Asked(NamedTuple):
    """What each page is asked: of which machine, and when."""

    #: "": all of them.
    machine: str
    machines: tuple[str, ...]
    since: int
    until: int
    #: Whether the names of people may be shown.
    names: bool
    #: Changes whenever the answer may.
    version: Hashable

    def question(
        self, *by: str, of: Measure = "hours", where: Sequence[str] = (), top: int = TOP
    ) -> Question:
        """Return a question about these jobs."""
        return Question(
            by=by,
            of=of,
            machine=self.machine,
            since=self.since,
            until=self.until,
            where=tuple(where),
            top=top,
            names=self.names,
        )

    def page(self, store: Store, question: Question) -> Page:
        """Return the answer to a question about them."""
        return usage_page(store, question, context_of(self.machines))


# ---- the pages -----------------------------------------------------------------------------------


def overview(state: ServerState, query: PageQuery) -> StudyView:
    """Return all in short: months by size, applications, waits, failures, imports."""

    def answer(store: Store, asked: Asked) -> Page:
        parts = [
            ("Hours by month and size", "/usage/by", asked.question(MONTH, "size")),
            ("Applications", "/usage/by?by=application", asked.question("application")),
            ("Waits", "/usage/waits", asked.question(MONTH, of="waits")),
            ("Failures by cause", "/usage/failures", asked.question("cause", of="failures")),
        ]
        pages = [(title, path, asked.page(store, question)) for title, path, question in parts]
        imported = imports_page(store, asked.machine)
        return joined("Usage", [*pages, ("Imports", "/usage/imports", imported)])

    return _study(state, query, "Usage", (), answer)


def by(state: ServerState, query: PageQuery) -> StudyView:
    """Return the answer to any question of ``seatrial usage``."""
    of = cast(Measure, query.choice("of", MEASURES, "hours"))
    words = query.text("by") or f"{MONTH},size"
    where = tuple(query.all("where"))
    fields = [
        Field("By", "by", f"{MONTH},size", 18, [MONTH, *ATTRIBUTES]),
        Field("Of", "of", MEASURES[0], 10, MEASURES),
        Field("Where", "where", "application=g09", 22),
    ]

    try:
        names = parse_by([words])
        naming = NAMING.intersection([*names, *(parse_condition(text).attribute for text in where)])
    except UsageError as error:
        raise BadQuery(str(error)) from None

    def answer(store: Store, asked: Asked) -> Page:
        if naming and not asked.names:
            raise UsageError(f"{' and '.join(sorted(naming))}: {UNNAMED}")
        return asked.page(store, asked.question(*names, of=of, where=where, top=60))

    return _study(state, query, f"Usage: {of}", fields, answer, of, words, where)


def failures(state: ServerState, query: PageQuery) -> StudyView:
    """Return how jobs ended: by cause, by month, and by size."""

    def answer(store: Store, asked: Asked) -> Page:
        parts = [
            (title, "", asked.page(store, asked.question(name, of="failures")))
            for title, name in (
                ("By cause", "cause"),
                ("By month", MONTH),
                ("By size", "size"),
                ("By application", "application"),
            )
        ]
        return joined("Failures", parts)

    return _study(state, query, "Usage: failures", (), answer)


def waits(state: ServerState, query: PageQuery) -> StudyView:
    """Return how long jobs waited: by month, size, queue and machine."""

    def answer(store: Store, asked: Asked) -> Page:
        parts = [
            (title, "", asked.page(store, asked.question(name, of="waits")))
            for title, name in (
                ("By month", MONTH),
                ("By size", "size"),
                ("By queue", "queue"),
                ("By machine", "machine"),
            )
        ]
        return joined("Waits", parts)

    return _study(state, query, "Usage: waits", (), answer)


def imports(state: ServerState, query: PageQuery) -> StudyView:
    """Return what was imported, and the gaps."""
    store = state.store()
    machines = known_machines(store)
    machine = query.choice("machine", ["", *machines])
    page = imports_page(store, machine) if machines else Page("Imports", [], summary=NOTHING)
    fields = [Field("Machine", "machine", choices=machines)]
    return StudyView(title="Usage: imports", fields=fields, state="judged", answer=page)


def joined(title: str, parts: Sequence[tuple[str, str, Page]]) -> Page:
    """Return several answers as one page. Each has a title, and the address of its own page."""
    answers = Answers()
    return Page(
        title,
        [
            section
            for name, address, page in parts
            for section in answers.sections(page, name, Link(name, address) if address else None)
        ],
        records=lambda: {name: page.records() for name, _, page in parts},
        lines=lambda: _lines(parts),
    )


def _lines(parts: Sequence[tuple[str, str, Page]]) -> Iterator[Sequence[object]]:
    """Yield the cells of several answers, whose columns differ: a line for each cell."""
    yield "answer", "row", "column", "value"
    for name, _, page in parts:
        titles, *lines = page.lines() if page.lines else [()]
        for number, line in enumerate(lines, 1):
            for title, value in zip(titles, line, strict=True):
                yield name, number, title, value


# ---- what is asked -------------------------------------------------------------------------------


def _study(
    state: ServerState,
    query: PageQuery,
    title: str,
    fields: Sequence[Field],
    answer: Callable[[Store, Asked], Page],
    *options: Hashable,
) -> StudyView:
    """Return a page; its answer is made beside the server's requests."""
    machines = known_machines(state.store())
    fields = [
        Field("Machine", "machine", choices=machines),
        *fields,
        Field("Since", "since", "2011-01-01, 90d", 12),
        Field("Until", "until", "now", 12),
    ]
    asked = _asked(state.store(), query, machines)
    view = StudyView(title=title, fields=fields, state="judged")
    if not machines:
        return replace(view, answer=Page(title, [], summary=NOTHING))
    key = ("usage", query.address, *options, *asked[:5])
    found = state.studies.answer(key, asked.version, lambda: answer(state.store(), asked))
    return replace(view, state=found.state, reason=found.reason, answer=found.value)


def _asked(store: Store, query: PageQuery, machines: Sequence[str]) -> Asked:
    """Return what a query asks. Without a span it is of the last twelve months that are known."""
    machine = query.choice("machine", ["", *machines])
    since, until = (query.moment(name) // SECOND_NS for name in ("since", "until"))
    chosen = (machine,) if machine else tuple(machines)
    if not since and not until:
        since = _months_before(_known_until(store, chosen), MONTHS)
    return Asked(
        machine,
        chosen,
        since,
        until,
        bool(chosen) and all(settings_of(name).names_on_pages for name in chosen),
        (_imports_mark(store), *(_files_mark(name) for name in chosen)),
    )


def known_machines(store: Store) -> list[str]:
    """Return the machines of whose jobs something is known."""
    return [name for (name,) in store.rows("SELECT DISTINCT machine FROM usage_imports")]


def _known_until(store: Store, machines: Sequence[str]) -> int:
    """Return up to when the jobs of machines are known, in s; 0 if nothing is."""
    latest = store.rows("SELECT machine, max(until) FROM usage_imports GROUP BY machine")
    return max((until for name, until in latest if name in machines), default=0)


def _months_before(time: int, months: int) -> int:
    """Return when the month began that is so many months before a time, both in s. The month of
    that time is the last one of them."""
    if not time:
        return 0
    last = datetime.fromtimestamp(time - 1).astimezone()
    number = last.year * 12 + last.month - months
    return int(datetime(number // 12, number % 12 + 1, 1).timestamp())


def _imports_mark(store: Store) -> Hashable:
    """Return what changes with every import, and whenever jobs are removed."""
    return tuple(store.rows(NEWS)[0])


def _files_mark(machine: str) -> Hashable:
    """Return what changes with the machine's settings, and with the files that these name."""
    settings = settings_of(machine)
    named = (settings.fields, settings.applications, settings.charges)
    return settings.names_on_pages, *(_changed(Path(name)) for name in named if name)


def _changed(file: Path) -> int:
    try:
        return file.stat().st_mtime_ns
    except OSError:
        return 0
