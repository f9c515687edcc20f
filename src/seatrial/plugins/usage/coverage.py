"""Shares of the hours: of jobs above a size, and of those that a suite's tests stand for.

    page = share_page(store, asked, context, Size(8192, "cores"))
    page = coverage_page(store, asked, context, tests_of(cases, apps), within=2.0)

A test stands for jobs of its application (``app:``) whose cores are within a factor of its own.
What to add first is found greedily: the application and the size that add the most hours, then the
next with these counted. For such sums of sets the greedy order reaches at least 63 % of what is
possible with as many tests (Nemhauser, Wolsey and Fisher 1978).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from seatrial.errors import UsageError
from seatrial.lazy import Bools, Ints, np
from seatrial.model.test import Case
from seatrial.plugins.usage.answer_page import count_text, drawn_bars, noted, span_text
from seatrial.plugins.usage.attributes import (
    ATTRIBUTES,
    MONTH,
    UNKNOWN,
    Context,
    month_starts,
    shown_names,
    title_of,
    words,
    zone_name,
)
from seatrial.plugins.usage.jobs import Jobs, Words
from seatrial.plugins.usage.questions import (
    HOUR,
    Question,
    hints,
    hours_text,
    load,
    pieces_of,
    seconds_of,
    sums_of,
)
from seatrial.plugins.usage.waits_page import Size
from seatrial.results.store.schema import Store
from seatrial.show.draw.plots import Bar
from seatrial.show.page import Chart, Column, Page, Section, Table
from seatrial.units import in_per_cent, listed, show_share

# ---- the share above a size ----------------------------------------------------------------------


class _ShareRow(NamedTuple):
    """The hours of jobs with one word: of all, of those above the size, of unknown sizes."""

    word: str
    seconds: int
    above: int
    unknown: int

    @property
    def share(self) -> float:
        """The part above the size, of those whose size is known."""
        known = self.seconds - self.unknown
        return self.above / known if known else 0.0


class _ShareAnswer(NamedTuple):
    """The shares above a size."""

    asked: Question
    size: Size
    rows: list[_ShareRow]
    total: _ShareRow
    since: int
    until: int
    notes: list[str]


def share_page(store: Store, asked: Question, context: Context, size: Size) -> Page:
    """Return the share of hours of jobs above a size, as a page. Raises UsageError if there are no
    jobs."""
    found = _share_above(store, asked, context, size)
    name = asked.by[0]
    title = f"Hours of jobs above {size} by {name}"
    shown = found.rows if name == MONTH else found.rows[: asked.top]
    table = Table(
        [
            Column(title_of(name), fold=True),
            Column(asked.unit.capitalize(), "number"),
            Column("Above", "number"),
            Column("Share", "number"),
            Column("Unknown size", "number"),
        ],
        [
            [
                row.word,
                hours_text(row.seconds),
                hours_text(row.above),
                in_per_cent(row.share),
                hours_text(row.unknown) if row.unknown else "",
            ]
            for row in shown
        ],
        total=len(found.rows),
        remainder="; --top shows more",
    )
    of = hours_text(found.total.seconds - found.total.unknown)
    return Page(
        title,
        [
            Section(title, [_share_chart(title, shown, asked), table]),
            *noted(found.notes),
        ],
        summary=(
            f"{show_share(found.total.share)} of {of} {asked.unit} were of jobs of more than "
            f"{size}; {span_text(found.since, found.until, context)}"
        ),
        records=partial(_share_records, found, context),
        lines=partial(_share_lines, found),
    )


def _share_chart(title: str, rows: Sequence[_ShareRow], asked: Question) -> Chart:
    charted = [
        Bar(
            row.word,
            [row.above / HOUR, (row.seconds - row.above) / HOUR],
            in_per_cent(row.share),
        )
        for row in rows
    ]
    parts = ("above", "not above, or of unknown size")
    return Chart(partial(drawn_bars, charted, title=title, parts=parts, unit=asked.unit))


def _share_above(store: Store, asked: Question, context: Context, size: Size) -> _ShareAnswer:
    """Return the shares of hours of jobs of more than a size. Raises UsageError if there are no
    jobs."""
    if len(asked.by) != 1:
        raise UsageError("--by: shares are told by one name, such as machine or month")
    found = load(store, asked, context, {size.unit})
    name = asked.by[0]
    if name == MONTH:
        bounds, names = month_starts(found.since, found.until, context.zone)
    else:
        bounds = np.array([found.since, found.until], dtype=np.int64)
        told = words(name, found.jobs, context)
        names = told.names
    pieces = pieces_of(found.jobs, bounds)
    codes = pieces.spans if name == MONTH else told.codes[pieces.places].astype(np.int64)
    amounts = found.jobs.numbers[size.unit][pieces.places]
    seconds = pieces.seconds * found.amounts(asked.unit)[pieces.places]
    all_, above, unknown = (
        sums_of(codes[chosen], seconds[chosen], len(names))
        for chosen in (slice(None), amounts > size.amount, amounts <= 0)
    )
    shown = shown_names(name, names, asked.names)
    rows = [
        _ShareRow(*row)
        for row in zip(shown, all_.tolist(), above.tolist(), unknown.tolist(), strict=True)
        if row[1]
    ]
    if name != MONTH and not ATTRIBUTES[name].ordered:
        rows.sort(key=lambda row: (row.word == UNKNOWN, -row.seconds))
    total = _ShareRow("", *(int(column.sum()) for column in (all_, above, unknown)))
    told_words = {} if name == MONTH else {name: told}
    notes = [*found.notes, *hints(found, asked, told_words)]
    return _ShareAnswer(asked, size, rows, total, found.since, found.until, notes)


def _share_records(found: _ShareAnswer, context: Context) -> dict[str, Any]:
    return {
        "by": found.asked.by[0],
        "unit": found.asked.unit,
        "above": {found.size.unit: found.size.amount},
        "since": found.since,
        "until": found.until,
        "zone": zone_name(context.zone),
        "total": _share_record(found.total),
        "rows": [{found.asked.by[0]: row.word, **_share_record(row)} for row in found.rows],
        "notes": found.notes,
    }


def _share_record(row: _ShareRow) -> dict[str, Any]:
    return {
        "seconds": row.seconds,
        "above": row.above,
        "unknown": row.unknown,
        "share": row.share,
    }


def _share_lines(found: _ShareAnswer) -> Iterable[Sequence[object]]:
    yield found.asked.by[0], "seconds", "above", "unknown", "share"
    for row in found.rows:
        yield row.word, row.seconds, row.above, row.unknown, row.share


# ---- what a suite stands for ---------------------------------------------------------------------

MAX_ADDED = 10
LEAST_GAIN = 0.001
"""Of all hours: less is not worth a test."""


class SuiteTest(NamedTuple):
    """A test of a suite, by what it stands for."""

    name: str
    app: str
    cores: int


def tests_of(cases: Iterable[Case], apps: Mapping[str, str]) -> list[SuiteTest]:
    """Return the cases that run, with the applications of their tests and the cores that they
    use."""
    return [
        SuiteTest(case.name, apps[case.test], case.tasks * case.threads)
        for case in cases
        if not case.only_builds
    ]


class Covered(NamedTuple):
    """The hours of jobs with one word: of all, of applications that have a test, and of those whose
    size it has, too."""

    word: str
    seconds: int
    of_application: int
    of_size: int


class Addition(NamedTuple):
    """A test to be added, and the share of the hours that the suite then stands for."""

    application: str
    cores: int
    gain: float
    share: float


class CoverageAnswer(NamedTuple):
    """What a suite stands for."""

    asked: Question
    within: float
    total: Covered
    tables: dict[str, list[Covered]]
    additions: list[Addition]
    #: Applications of tests that no job has.
    unused: list[str]
    since: int
    until: int
    notes: list[str]


_TABLES = ("application", "field", "size")


def coverage_page(
    store: Store,
    asked: Question,
    context: Context,
    tests: Sequence[SuiteTest],
    within: float,
    left_out: Sequence[str] = (),
) -> Page:
    """Return which share of the hours a suite stands for, as a page. ``left_out``: what is said of
    cases that cannot run there. Raises UsageError if there are no jobs."""
    found = coverage(store, asked, context, tests, within)
    found.notes.extend(left_out)
    total = found.total
    sections = [
        Section(
            f"Hours by {name}",
            [_covered_chart(found, name, rows), _covered_table(found, name, rows)],
        )
        for name, rows in found.tables.items()
    ]
    return Page(
        "Coverage",
        [
            *sections,
            Section("Tests to add first", [_additions_table(found)]),
            *noted(found.notes),
        ],
        summary=(
            f"{count_text(len(tests), 'case')} of the suite: they cover "
            f"{_part(total.of_size, total.seconds)} of {hours_text(total.seconds)} {asked.unit} "
            f"by application and size, {_part(total.of_application, total.seconds)} by "
            "application alone; "
            f"{span_text(found.since, found.until, context)}"
        ),
        records=partial(_coverage_records, found),
        lines=partial(_coverage_lines, found),
    )


def coverage(
    store: Store, asked: Question, context: Context, tests: Sequence[SuiteTest], within: float
) -> CoverageAnswer:
    """Return which share of the hours a suite stands for. Raises UsageError if there are no jobs,
    or no tests."""
    if not tests:
        raise UsageError("no case of the suite runs; name a suite with tests")
    columns = set[str]().union(*(ATTRIBUTES[name].columns(context) for name in _TABLES))
    found = load(store, asked, context, columns)
    told = words("application", found.jobs, context)
    seconds = seconds_of(found, asked.unit)
    present = [told.names[code] for code in np.unique(told.codes).tolist()]
    sizes = _sizes_by_application(tests, present, context)
    has_test: Bools = np.array([name in sizes for name in told.names], dtype=bool)[told.codes]
    alike = _alike(found.jobs, told.codes, told.names, sizes, within)
    by_name = {name: words(name, found.jobs, context) for name in _TABLES[1:]}
    by_name = {_TABLES[0]: told, **by_name}
    tables = {
        name: _covered(name, of_jobs, seconds, has_test, alike) for name, of_jobs in by_name.items()
    }
    parts = (seconds, seconds[has_test], seconds[alike])
    total = Covered("", *(int(part.sum()) for part in parts))
    unused = sorted(
        {test.app for test in tests if _application(test.app, present, context) is None}
    )
    notes = [
        *found.notes,
        f"A test stands for jobs of its application with up to {within:g} times as many cores as "
        "it, or as few.",
        *hints(found, asked, by_name),
    ]
    if unused:
        notes.append(f"No job is known of the applications of these tests: {listed(unused, 8)}.")
    additions = _additions(
        _Uncovered.of(found.jobs, told.codes, told.names, np.where(alike, 0, seconds)),
        total,
        within,
    )
    return CoverageAnswer(
        asked, within, total, tables, additions, unused, found.since, found.until, notes
    )


def _application(app: str, names: Collection[str], context: Context) -> str | None:
    """Return the application of jobs that a test names: as it is, whatever its case, or as the
    rules tell it of a program of that name; None if no job has it."""
    if app in names:
        return app
    same = [name for name in names if name.casefold() == app.casefold()]
    if same:
        return same[0]
    told = ATTRIBUTES["application"].told_by_rules(app, context)
    return told if told != UNKNOWN and told in names else None


def _sizes_by_application(
    tests: Iterable[SuiteTest], names: Collection[str], context: Context
) -> dict[str, set[int]]:
    sizes: dict[str, set[int]] = {}
    for test in tests:
        name = _application(test.app, names, context)
        if name is not None:
            sizes.setdefault(name, set()).add(test.cores)
    return sizes


def _alike(
    jobs: Jobs,
    codes: Ints | Any,
    names: Sequence[str],
    sizes: Mapping[str, Collection[int]],
    within: float,
) -> Bools:
    """Return for which jobs a test stands: by application and cores."""
    cores = jobs.numbers["cores"]
    alike = np.zeros(len(jobs), dtype=bool)
    for code, name in enumerate(names):
        of_name = np.flatnonzero(codes == code) if name in sizes else np.array([], dtype=int)
        for size in sizes.get(name, ()):
            same = (cores[of_name] * within >= size) & (cores[of_name] <= size * within)
            alike[of_name[same]] = True
    return alike


def _covered(name: str, told: Words, seconds: Ints, has_test: Bools, alike: Bools) -> list[Covered]:
    codes, names = told
    columns = [
        sums_of(codes[chosen], seconds[chosen], len(names)).tolist()
        for chosen in (slice(None), has_test, alike)
    ]
    rows = [Covered(*row) for row in zip(names, *columns, strict=True) if row[1]]
    if not ATTRIBUTES[name].ordered:
        rows.sort(key=lambda row: (row.word == UNKNOWN, -row.seconds))
    return rows


class _Uncovered(NamedTuple):
    """The hours that no test stands for, by application and number of cores."""

    names: Sequence[str]
    #: Ascending numbers of cores.
    cores: Ints
    #: Shape (applications, cores).
    seconds: Ints

    @classmethod
    def of(cls, jobs: Jobs, codes: Any, names: Sequence[str], seconds: Ints) -> _Uncovered:
        """Return the hours of jobs whose application and size are known."""
        known = (jobs.numbers["cores"] > 0) & (seconds > 0)
        cores, place = np.unique(jobs.numbers["cores"][known], return_inverse=True)
        cells = codes[known].astype(np.int64) * len(cores) + place
        sums = sums_of(cells, seconds[known], len(names) * len(cores))
        by_name = sums.reshape(len(names), len(cores))
        if UNKNOWN in names:
            by_name[list(names).index(UNKNOWN)] = 0
        return cls(names, cores, by_name)


def _additions(left: _Uncovered, total: Covered, within: float) -> list[Addition]:
    """Return the tests that add the most hours, one by one. The sizes tried are powers of 2 and
    those of jobs, as tests are written for."""
    if not len(left.cores) or not total.seconds:
        return []
    powers = 2 ** np.arange(0, int(left.cores[-1]).bit_length() + 1)
    sizes = np.unique(np.concatenate([powers, left.cores]))
    first = np.searchsorted(left.cores, np.ceil(sizes / within))
    end = np.searchsorted(left.cores, np.floor(sizes * within), side="right")
    seconds, covered, found = left.seconds.copy(), total.of_size, list[Addition]()
    while len(found) < MAX_ADDED:
        whole = np.zeros((len(left.names), len(left.cores) + 1), dtype=np.int64)
        np.cumsum(seconds, axis=1, out=whole[:, 1:])
        gains = whole[:, end] - whole[:, first]
        row = int(gains.max(axis=1).argmax())
        gain = int(gains[row].max())
        if gain < LEAST_GAIN * total.seconds:
            break
        equal = np.flatnonzero(gains[row] == gain)
        # A power of 2 where one is as good.
        column = int(equal[np.isin(sizes[equal], powers).argmax()])
        covered += gain
        seconds[row, first[column] : end[column]] = 0
        found.append(
            Addition(
                left.names[row],
                int(sizes[column]),
                gain / total.seconds,
                covered / total.seconds,
            )
        )
    return found


def _part(seconds: int, whole: int) -> str:
    return show_share(seconds / whole) if whole else "nothing"


def _covered_chart(found: CoverageAnswer, name: str, rows: Sequence[Covered]) -> Chart:
    charted = [
        Bar(
            row.word,
            [
                row.of_size / HOUR,
                (row.of_application - row.of_size) / HOUR,
                (row.seconds - row.of_application) / HOUR,
            ],
            in_per_cent(row.of_size / row.seconds),
        )
        for row in rows[: found.asked.top]
    ]
    parts = ("covered", "application alone", "not covered")
    title = f"Hours that a suite covers, by {name}"
    return Chart(partial(drawn_bars, charted, title=title, parts=parts, unit=found.asked.unit))


def _covered_table(found: CoverageAnswer, name: str, rows: Sequence[Covered]) -> Table:
    whole = found.total.seconds
    return Table(
        [
            Column(title_of(name), fold=True),
            Column("Share of hours", "number"),
            Column("Covered", "number"),
            Column("Application alone", "number"),
        ],
        [
            [
                row.word,
                in_per_cent(row.seconds / whole),
                in_per_cent(row.of_size / row.seconds),
                in_per_cent(row.of_application / row.seconds),
            ]
            for row in rows[: found.asked.top]
        ],
        total=len(rows),
        remainder="; --top shows more",
    )


def _additions_table(found: CoverageAnswer) -> Table:
    return Table(
        [
            Column("Application"),
            Column("Cores", "number"),
            Column("Adds", "number"),
            Column("Then covered", "number"),
        ],
        [
            [each.application, f"{each.cores:,}", in_per_cent(each.gain), in_per_cent(each.share)]
            for each in found.additions
        ],
    )


def _coverage_records(found: CoverageAnswer) -> dict[str, Any]:
    return {
        "unit": found.asked.unit,
        "within": found.within,
        "since": found.since,
        "until": found.until,
        "total": found.total._asdict(),
        **{name: [row._asdict() for row in rows] for name, rows in found.tables.items()},
        "add": [each._asdict() for each in found.additions],
        "unused": found.unused,
        "notes": found.notes,
    }


def _coverage_lines(found: CoverageAnswer) -> Iterable[Sequence[object]]:
    yield "by", *Covered._fields
    for name, rows in found.tables.items():
        for row in rows:
            yield name, *row
