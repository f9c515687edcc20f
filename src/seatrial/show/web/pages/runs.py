"""Runs: all that match the filters, in the order of time, with their counts. Failures: the runs
that failed, the newest verdict first."""

import time
from collections.abc import Sequence
from typing import Any, ClassVar

from msgspec import structs
from msgspec.structs import replace

from seatrial.model.codes import code_of
from seatrial.results.store import queries, run_lists
from seatrial.results.store.queries import excluded_runs
from seatrial.results.store.run_lists import BY_VERDICT, ORDERS, End, builds_under_way
from seatrial.results.store.tables import RUNS_ON_PAGE, Column, RunRow, listed_columns
from seatrial.show.web.caches import in_time
from seatrial.show.web.filters import ListFrame, filters_of, page_of
from seatrial.show.web.output import FilePiece, lines_of, tail
from seatrial.show.web.page import BadQuery, PageQuery
from seatrial.show.web.server_state import ServerState

SHOWN = 100
MAX_SHOWN = 2000

# The states of runs, in the order in which the page counts them.
STATES = ("passed", "running", "waiting", "failed", "known", "again")


class RunLine(RunRow, frozen=True, kw_only=True):
    """A run in a list. ``reason`` is why it has its verdict, shortened; so is ``why``."""

    reason: str
    excluded: bool = False


def line_of(run: RunRow, reason: str, excluded: bool) -> RunLine:
    """Return the line of a run in a list."""
    fields = structs.asdict(run) | {"why": reason}
    return RunLine(**fields, reason=reason, excluded=excluded)


class RunsPage(ListFrame, frozen=True, kw_only=True):
    """The runs that match. ``counts`` are over all pages and states, each with the address of the
    page with these alone, or of all; ``found`` are of the chosen state. ``building``: the builds
    that are under way in the trials."""

    list_columns: ClassVar[list[Column]] = listed_columns(RUNS_ON_PAGE)

    runs: list[RunLine]
    counts: list[dict[str, Any]]
    building: int
    total: int
    found: int


def data(state: ServerState, query: PageQuery) -> RunsPage:
    limit = query.number("limit", SHOWN, least=1, most=MAX_SHOWN)
    chosen = query.choice("state", STATES)
    order = query.choice("sort", tuple(ORDERS), "newest")
    store = state.store()
    with store.reading():
        filters = filters_of(store, query)
        in_state = replace(filters, states=[chosen] if chosen else ())
        runs, frame = page_of(store, query, in_state, limit, ORDERS[order])
        counts = queries.counts(store, filters)
        building = builds_under_way(store, filters)
        excluded = excluded_runs(store, [run.row for run in runs])
    tallies = []
    for name in STATES:
        link = query.link(state="" if name == chosen else name, before="")
        number = getattr(counts, name)
        tallies.append({"state": name, "runs": number, "chosen": name == chosen, "link": link})
    return RunsPage(
        **structs.asdict(frame),
        runs=[line_of(run, run.why.partition("\n")[0][:300], run.row in excluded) for run in runs],
        counts=tallies,
        building=building,
        total=sum(getattr(counts, name) for name in STATES),
        found=sum(getattr(counts, name) for name in STATES if chosen in ("", name)),
    )


# ---- failures ------------------------------------------------------------------------------------

FAILURES_SHOWN = 50
MAX_FAILURES_SHOWN = 200
MAX_OUTPUT = 2048
MAX_CAUSES = 12
LINES = 8
READING_S = 2.0  # for the output of all runs of a page together


COLUMNS = (  # the name in the address, the heading, the meaning
    ("time", "Time", "of the verdict"),
    ("tag", "Tag", "the trial's run tag"),
    ("machine", "Machine", ""),
    ("app", "App", "the application"),
    ("test", "Test", ""),
    ("case", "Case", "the test with its parameters"),
    ("run", "Run", ""),
    ("event", "Event", "by which it was known"),
    ("code", "Code", "the verdict and its number"),
    ("meaning", "Meaning", "of the code"),
    ("reason", "Why", "what was found"),
    ("cause", "Cause", "what its output tells, and the advice"),
    ("output", "Output", "the end of stderr, or of stdout"),
    ("nodes", "Nodes", ""),
    ("elapsed", "Elapsed", "of its script"),
    ("job", "Job", "at the scheduler"),
    ("directory", "Directory", ""),
)
_ON_REQUEST = ("case", "meaning", "nodes", "elapsed", "job", "directory")
USUAL = [name for name, _, _ in COLUMNS if name not in _ON_REQUEST]


class Failure(RunLine, frozen=True, kw_only=True):
    """A run that failed. ``time`` is that of its verdict in ns. ``output`` is the end of its file
    ``output_of``, or says why there is none; ``cause`` is what it failed of, as a line of its
    output tells (``cause_line``)."""

    time: int
    event: End
    meaning: str
    output: str
    output_of: str
    directory: str


class FailuresPage(ListFrame, frozen=True, kw_only=True):
    """The failures on a page, of ``found`` that match; ``shown`` are the names of its columns.
    ``causes`` are those of all pages, the most frequent first."""

    failures: list[Failure]
    causes: list[dict[str, Any]]
    found: int
    shown: list[str]
    columns: tuple[tuple[str, str, str], ...]


def failures(state: ServerState, query: PageQuery) -> FailuresPage:
    limit = query.number("limit", FAILURES_SHOWN, least=1, most=MAX_FAILURES_SHOWN)
    shown = _columns(query)
    store = state.store()
    with store.reading():
        filters = filters_of(store, query)
        # The window is of the time of the verdict, not of the run's creation.
        window = [f"runs.judged >= {filters.since:d}"] if filters.since else []
        window += [f"runs.judged < {filters.until:d}"] if filters.until else []
        filters = replace(filters, since=0, until=0, failed=True)
        runs, frame = page_of(store, query, filters, limit, BY_VERDICT, window)
        causes = run_lists.causes_of(store, filters, window)
        ends = run_lists.ends_of(store, runs)
        excluded = excluded_runs(store, [run.row for run in runs])
    outputs = _outputs(runs) if "output" in shown else {}
    return FailuresPage(
        **structs.asdict(frame),
        failures=[
            _failure(run, ends[run.row], outputs.get(run.row), run.row in excluded) for run in runs
        ],
        causes=[{"cause": c, "runs": n} for c, n in causes.items() if c][:MAX_CAUSES],
        found=sum(causes.values()),
        shown=shown,
        columns=COLUMNS,
    )


def _columns(query: PageQuery) -> list[str]:
    """Return the chosen columns in the order of the page."""
    chosen, known = set(query.all("column")), [name for name, _, _ in COLUMNS]
    if odd := sorted(chosen.difference(known)):
        raise BadQuery(f"column={odd[0][:40]!r}: one of {', '.join(known)}", "column")
    return [name for name in known if name in chosen] or USUAL


def _failure(run: RunRow, end: End, output: tuple[str, str] | None, excluded: bool) -> Failure:
    output_of, text = output or ("", "")
    reason = run.why[:MAX_OUTPUT]
    fields = structs.asdict(run) | {"why": reason, "again": False}
    return Failure(
        **fields,
        reason=reason,
        excluded=excluded,
        time=run.judged or run.created,
        event=End(end.event, end.value, end.text[:300]),
        meaning=code_of(run.code).meaning,
        output=text,
        output_of=output_of,
        directory=run.path,
    )


# ---- the end of what they wrote -----------------------------------------------------------


def _outputs(runs: Sequence[RunRow]) -> dict[int, tuple[str, str]]:
    """Return for each run its file and the end of it. Reading stops after READING_S."""
    with_files = [run for run in runs if run.path and not run.rehearsed]
    done = {run.row: ("", "its file system was too slow to answer") for run in with_files}
    until = time.monotonic() + READING_S

    def read() -> None:
        for run in with_files:
            if time.monotonic() < until:
                done[run.row] = _output(run)

    in_time(read, instead=None, wait_s=READING_S)
    return dict(done)  # the thread may still be reading


def _output(run: RunRow) -> tuple[str, str]:
    """Return the end of stderr, or of stdout if stderr is empty."""
    for name in ("stderr", "stdout"):
        piece = tail(run, name, MAX_OUTPUT)
        if not isinstance(piece, FilePiece):
            return "", f"{name} {piece}"
        lines = "\n".join(lines_of(piece)).rstrip().splitlines()
        if lines:
            return name, "\n".join(lines[-LINES:])
    return "", "it wrote nothing"
