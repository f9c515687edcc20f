"""Pages of the server: what others ran, as hours, waits, applications, failures, and its imports.

Each answer is the `Page` that ``seatrial usage`` prints. What names people is told of a machine
only if its file says so (``usage: {names_on_pages: true}``): users, accounts, the names of jobs and
of programs, and where files lie.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple, cast

from msgspec.structs import replace

from seatrial.errors import UsageError
from seatrial.plugins.usage import NEWS
from seatrial.plugins.usage.answer_page import usage_page
from seatrial.plugins.usage.attributes import ATTRIBUTES, MONTH, NAMING, Context, context_of
from seatrial.plugins.usage.charge_pages import ChargeQuestion, charges_page
from seatrial.plugins.usage.importing import imports_page
from seatrial.plugins.usage.jobs import known_machines
from seatrial.plugins.usage.questions import Measure, Question, parse_by, parse_condition
from seatrial.plugins.usage.report import NO_INCIDENT, Answers, losses_of_machines
from seatrial.plugins.usage.settings import settings_of
from seatrial.plugins.usage.waits_page import Like, parse_size, waits_page
from seatrial.results import notes
from seatrial.results.store.schema import Store
from seatrial.show.page import Column, Link, Page, Section, Table
from seatrial.show.web.page import BadQuery, PageQuery
from seatrial.show.web.server_state import ServerState
from seatrial.show.web.study_view import Field, StudyView
from seatrial.units import SECOND_NS, seconds

MEASURES: tuple[Measure, ...] = ("hours", "jobs", "users", "waits", "failures", "energy")
TOP, MOST = 12, 60  # rows of a part, and of a page that is about one question
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

    def context(self) -> Context:
        """Return what the files of the machines say."""
        return context_of(self.machines)

    def page(self, store: Store, question: Question) -> Page:
        """Return the answer to a question about them."""
        return usage_page(store, question, self.context())

    def answers(self, title: str, store: Store, by: Mapping[str, str], of: Measure) -> Page:
        """Return several questions of one kind, by their titles, as one page."""
        return joined(
            title,
            [
                (name, "", self.page(store, self.question(attribute, of=of)))
                for name, attribute in by.items()
            ],
        )


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
        page = joined("Usage", [*pages, ("Imports", "/usage/imports", imported)])
        return replace(page, sections=[*page.sections, _MORE])

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

    names = _by(words, where)
    told_by = [*names, *(parse_condition(text).attribute for text in where)]

    def answer(store: Store, asked: Asked) -> Page:
        return asked.page(store, asked.question(*names, of=of, where=where, top=MOST))

    return _study(state, query, f"Usage: {of}", fields, answer, of, words, where, told_by=told_by)


def failures(state: ServerState, query: PageQuery) -> StudyView:
    """Return how jobs ended: by cause, month, size and application."""
    parts = {
        "By cause": "cause",
        "By month": MONTH,
        "By size": "size",
        "By application": "application",
    }

    def answer(store: Store, asked: Asked) -> Page:
        return asked.answers("Failures", store, parts, "failures")

    return _study(state, query, "Usage: failures", (), answer)


def waits(state: ServerState, query: PageQuery) -> StudyView:
    """Return how long jobs waited: all by month, size, queue and machine; those like one."""
    words, size, walltime = (query.text(name) for name in ("by", "size", "walltime"))
    fields = [
        Field("Nodes", "size", "3, 72cores", 10),
        Field("Time limit", "walltime", "36h", 8),
        Field("By", "by", "machine", 12, [MONTH, *ATTRIBUTES]),
    ]
    names = _by(words or "machine", ())
    try:
        like = Like(
            size=parse_size(size, "nodes") if size else None,
            walltime=seconds(walltime) if walltime else None,
        )
    except ValueError as error:
        raise BadQuery(str(error)) from None

    def answer(store: Store, asked: Asked) -> Page:
        if words or size or walltime:
            return waits_page(store, asked.question(*names, of="waits"), asked.context(), like)
        parts = {"By month": MONTH, "By size": "size", "By queue": "queue", "By machine": "machine"}
        return asked.answers("Waits", store, parts, "waits")

    options = (words, size, walltime)
    return _study(state, query, "Usage: waits", fields, answer, *options, told_by=names)


def charges(state: ServerState, query: PageQuery) -> StudyView:
    """Return what jobs are charged."""
    words = query.text("by") or MONTH
    names = _by(words, ())

    def answer(store: Store, asked: Asked) -> Page:
        question = ChargeQuestion(
            by=names,
            machine=asked.machine,
            since=asked.since,
            until=asked.until,
            names=asked.names,
            top=MOST,
        )
        return joined("Charges", [("Charges", "", charges_page(store, question))])

    fields = [Field("By", "by", MONTH, 18, [MONTH, *ATTRIBUTES])]
    return _study(state, query, "Usage: charges", fields, answer, words, told_by=names)


def losses(state: ServerState, query: PageQuery) -> StudyView:
    """Return what incidents cost."""

    def answer(store: Store, asked: Asked) -> Page:
        file = state.folder / notes.FILE
        found = losses_of_machines(store, file, asked.machines, asked.since, asked.until)
        if not found:
            return Page("Losses", [], summary=NO_INCIDENT)
        return joined("Losses", [(title, "", page) for title, page in found])

    return _study(state, query, "Usage: losses", (), answer)


def imports(state: ServerState, query: PageQuery) -> StudyView:
    """Return what was imported, and the gaps."""
    store = state.store()
    machines = known_machines(store)
    machine = _machine(query, machines)
    page = imports_page(store, machine) if machines else Page("Imports", [], summary=NOTHING)
    fields = _machine_field(machines)
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


_MORE = Section(
    "More",
    [
        Table(
            [Column("Page"), Column("Shows")],
            [
                [Link("any question", "/usage/by"), "hours, jobs, users, energy by what you name"],
                [Link("waits", "/usage/waits?size=3&walltime=36h"), "of jobs like one"],
                [Link("charges", "/usage/charges"), "by the rules of the site"],
                [Link("losses", "/usage/losses"), "what incidents cost"],
            ],
        )
    ],
)


# ---- what is asked -------------------------------------------------------------------------------


def _study(
    state: ServerState,
    query: PageQuery,
    title: str,
    fields: Sequence[Field],
    answer: Callable[[Store, Asked], Page],
    *options: Hashable,
    told_by: Sequence[str] = (),
) -> StudyView:
    """Return a page; its answer is made beside the server's requests. It is refused at once where
    ``told_by``, what jobs are told apart by, would name people."""
    machines = known_machines(state.store())
    fields = [
        *_machine_field(machines),
        *fields,
        Field("Since", "since", "2011-01-01, 90d", 12),
        Field("Until", "until", "now", 12),
    ]
    asked = _asked(state, query, machines)
    view = StudyView(title=title, fields=fields, state="judged")
    if not machines:
        return replace(view, answer=Page(title, [], summary=NOTHING))
    naming = sorted(NAMING.intersection(told_by))
    if naming and not asked.names:
        return replace(view, state="refused", reason=f"{' and '.join(naming)}: {UNNAMED}")
    key = ("usage", query.address, *options, *asked[:5])

    def judged() -> Page:
        store = state.store()
        return answer(store, _of_last_year(store, asked))

    found = state.studies.answer(key, asked.version, judged)
    return replace(view, state=found.state, reason=found.reason, answer=found.value)


def _asked(state: ServerState, query: PageQuery, machines: Sequence[str]) -> Asked:
    """Return what a query asks."""
    machine = _machine(query, machines)
    chosen = (machine,) if machine else tuple(machines)
    return Asked(
        machine,
        chosen,
        query.moment("since") // SECOND_NS,
        query.moment("until") // SECOND_NS,
        bool(chosen) and all(settings_of(name).names_on_pages for name in chosen),
        (
            _imports_mark(state.store()),
            _changed(state.folder / notes.FILE),
            *(_files_mark(name) for name in chosen),
        ),
    )


def _machine_field(machines: Sequence[str]) -> list[Field]:
    """Return the field in which a machine is chosen; none where there is nothing to choose from."""
    return [Field("Machine", "machine", choices=machines)] if machines else []


def _machine(query: PageQuery, machines: Sequence[str]) -> str:
    """Return the machine that a query names, "" for all. Where nothing was imported, the page says
    that of any machine."""
    return query.choice("machine", ["", *machines]) if machines else query.text("machine")


def _by(text: str, where: Sequence[str]) -> tuple[str, ...]:
    """Return what jobs are told apart by. Raises BadQuery for that, and for conditions."""
    try:
        for condition in where:
            parse_condition(condition)
        names = parse_by([text])
    except UsageError as error:
        raise BadQuery(str(error)) from None
    if not names:
        raise BadQuery(f"by={text!r}: write one or two names, such as {MONTH},size", "by")
    return names


def _of_last_year(store: Store, asked: Asked) -> Asked:
    """Return a question without a span as one about the last twelve months that are known."""
    if asked.since or asked.until:
        return asked
    latest = store.rows("SELECT machine, max(until) FROM usage_imports GROUP BY machine")
    until = max((until for name, until in latest if name in asked.machines), default=0)
    if not until:
        return asked
    last = datetime.fromtimestamp(until - 1, asked.context().zone)
    month = last.year * 12 + last.month - MONTHS
    since = datetime(month // 12, month % 12 + 1, 1, tzinfo=last.tzinfo)
    return asked._replace(since=int(since.timestamp()))


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
