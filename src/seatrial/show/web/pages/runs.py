"""Runs: all that match the filters, in the order of time, with their counts. Failures: the runs
that failed, the newest verdict first. Run: one run: what was requested and what ran, its time,
metrics, output and siblings."""

import math
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from msgspec import Struct, structs
from msgspec.structs import replace

from seatrial.errors import TrialError, UsageError
from seatrial.escaping import plain, plain_line
from seatrial.execute.trial_folder import Record, TrialFolder
from seatrial.judge.promises import NOTHING, Promises, beside
from seatrial.judge.references import References
from seatrial.model.codes import CODES, code_of
from seatrial.model.node_set import unfold_or_empty
from seatrial.model.run_settings import described, effective
from seatrial.model.test import JobOptions, Test
from seatrial.results import one_run
from seatrial.results.references import expected, promises_in, with_elapsed
from seatrial.results.store import queries, run_lists
from seatrial.results.store.queries import excluded_runs
from seatrial.results.store.queries import trial as trial_of
from seatrial.results.store.run_lists import (
    BY_VERDICT,
    ORDERS,
    Choices,
    End,
    Order,
    PageCursor,
    Siblings,
    builds_under_way,
    earlier,
    siblings,
)
from seatrial.results.store.schema import Store
from seatrial.results.store.tables import (
    RUNS_ON_PAGE,
    STATES,
    CaseRow,
    Column,
    EventRow,
    Filters,
    GapRow,
    MetricRow,
    RunRow,
    TrialRow,
    listed_columns,
    outcome_of,
)
from seatrial.results.store.upserts import gaps
from seatrial.show.breakdowns import parts_page as parts_page
from seatrial.show.web.caches import in_time
from seatrial.show.web.output import (
    BUILD_LOG,
    FilePiece,
    Output,
    RunMetric,
    head,
    lines_of,
    output_of,
    placement_of,
    search_of,
    tail,
)
from seatrial.show.web.page import BadQuery, PageQuery, added_to
from seatrial.show.web.server_state import ServerState
from seatrial.units import SECOND_NS

# ---- lists of runs -------------------------------------------------------------------------------
#
# The runs that a query selects.
#
#     filters = filters_of(store, query)
#     queries.counts(store, filters)
#
# A regular expression becomes the set of tests whose name or application it matches; the database
# never sees it.

MAX_ROW = 1 << 53
MAX_GAPS = 20

VERDICTS = tuple(code.name for code in CODES.values())


def filters_of(store: Store, query: PageQuery) -> Filters:
    """Return what a query selects."""
    since, until = query.moment("since"), query.moment("until")
    if until and until <= since:
        raise BadQuery("until: is not after since; swap them", "until")
    verdict = query.choice("verdict", VERDICTS)
    return Filters(
        **query.texts("trial", "tag", "machine", "cause"),
        tests=_tests(store, query),
        since=since,
        until=until,
        verdicts=[verdict] if verdict else (),
        rehearsed=query.flag("rehearsed"),
    )


def _tests(store: Store, query: PageQuery) -> frozenset[str] | None:
    pattern = query.pattern("match")
    if pattern is None:
        return None
    return frozenset(
        name for name, app in queries.tests_of(store) if pattern.search(name) or pattern.search(app)
    )


class ListFrame(Struct, frozen=True, kw_only=True):
    """The parts of a page around its list of runs. ``newest`` and ``older`` are the addresses of
    the first page and the next one, or ""; ``choices`` are those of its form, ``gaps`` those in the
    journal of the named trial; ``rehearsed``: rehearsed runs may be in the list."""

    newest: str
    older: str
    choices: Choices
    gaps: list[GapRow]
    rehearsed: bool
    verdicts: tuple[str, ...] = VERDICTS


def page_of(
    store: Store,
    query: PageQuery,
    filters: Filters,
    limit: int,
    order: Order,
    window: Sequence[str] = (),
) -> tuple[list[RunRow], ListFrame]:
    """Return the runs of a page, at most ``limit``, and what is around them."""
    trial = trial_of(store, filters.trial) if filters.trial else None
    place = _place(query)
    runs = run_lists.page(store, filters, order, place, limit + 1, window)
    older = ""
    if len(runs) > limit:
        last = run_lists.place_of(runs[limit - 1], order)
        older = query.link(before=f"{last.key!r}~{last.row}")
    return runs[:limit], ListFrame(
        newest=query.link(before="") if place else "",
        older=older,
        choices=run_lists.choices(store),
        gaps=gaps(store, trial)[:MAX_GAPS] if trial and trial.damaged else [],
        rehearsed=trial.rehearsed if trial else filters.rehearsed,
    )


def _place(query: PageQuery) -> PageCursor | None:
    """Return the place after which a page begins, from ``before``."""
    text = query.text("before")
    if not text:
        return None
    key, _, row = text.partition("~")
    try:
        number: int | float = int(key) if key.lstrip("-").isdigit() else float(key)
        place = PageCursor(number, int(row))
    except (ValueError, OverflowError):
        place = PageCursor(math.nan, 0)
    if not abs(place.key) < 1 << 62 or not 0 <= place.row <= MAX_ROW or len(text) > 60:
        raise BadQuery(
            f"before={text[:40]!r} is no place in this list; take it from a link", "before"
        )
    return place


# ---- runs ----------------------------------------------------------------------------------------

SHOWN = 100
MAX_SHOWN = 2000

# The states of runs, in the order in which the page counts them.
COUNTED = ("passed", "running", "waiting", "failed", "known", "again")


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


def runs(state: ServerState, query: PageQuery) -> RunsPage:
    limit = query.number("limit", SHOWN, least=1, most=MAX_SHOWN)
    chosen = query.choice("state", COUNTED)
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
    for name in COUNTED:
        link = query.link(state="" if name == chosen else name, before="")
        number = getattr(counts, name)
        tallies.append({"state": name, "runs": number, "chosen": name == chosen, "link": link})
    return RunsPage(
        **structs.asdict(frame),
        runs=[line_of(run, run.why.partition("\n")[0][:300], run.row in excluded) for run in runs],
        counts=tallies,
        building=building,
        total=sum(getattr(counts, name) for name in COUNTED),
        found=sum(getattr(counts, name) for name in COUNTED if chosen in ("", name)),
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


# ---- run -----------------------------------------------------------------------------------------

MAX_SCRIPT = 128 << 10
MAX_EVENTS = 2000
MAX_METRICS = 200
MAX_NODES = 256
MAX_SIBLINGS = 40  # siblings in the table


_STATES = tuple(STATES)
OUTPUTS = ("stdout", "stderr")
_SLOW = "is not shown: its file system was too slow to answer"


def run(state: ServerState, query: PageQuery) -> dict[str, Any]:
    """Return a run. Times are in ns; what is not known is ""."""
    search, whole = search_of(query), query.flag("whole")
    store = state.store()
    with store.reading():
        run = _run(store, query)
        trial = queries.trial_of(store, run)
        case = queries.case_of(store, run)
        events = queries.events_of(store, run)
        metrics = queries.metrics_of(store, run)
        build = run_lists.build_of(store, trial.row, case.build)
        beside = siblings(store, run)
        past = earlier(store, beside.runs, run)
        damage = gaps(store, trial)[:MAX_GAPS] if trial.damaged else []
    record = state.records.record(trial)
    slow: Files = [Output(name=name, absent=_SLOW) for name in OUTPUTS], []
    has_log = build is not None and not run.path and not run.rehearsed
    of_build = f"{trial.path}/builds/{case.build}" if has_log else ""
    outputs, job = in_time(lambda: _files(run, search, whole, of_build), slow)
    if removal := one_run.removed_by_keep(events):
        outputs = [replace(one, absent=removal) if one.absent else one for one in outputs]
    how = one_run.launched(record, case, job[0]["text"] if job else "")
    same, known = _environments(run, beside.runs)
    test, nodes = _test_of(record, run), unfold_or_empty(run.nodes)
    code = code_of(run.code)
    references = state.records.references(store, trial)
    promises = in_time(lambda: promises_in(trial.path, case.test, case.id), NOTHING)
    return {
        "run": run,
        "verdict": code.name,
        "meaning": code.meaning,
        "reason": plain(run.why),
        "exclusion": plain_line(one_run.exclusion(events)),
        "former": _plain(one_run.former_verdict(events)),
        "state": _STATES[outcome_of(run.code, run.again)],
        "trial": trial,
        "case": case,
        "build": build,
        "launcher": how.kind,
        "launch": how.line,  # $LAUNCH
        # what was asked of the scheduler besides size and time
        "asked": in_time(lambda: _asked(record, trial, run), ""),
        "modules": one_run.modules_of(events),
        "same_environment": same,
        "known_environments": known,
        # Open phases last until now; in virtual time until the last event.
        "now": (trial.last or run.created) if run.rehearsed else time.time_ns(),
        "phases": one_run.phases(run, events),
        "events": [_event(event, run) for event in events[:MAX_EVENTS]],
        "events_left_out": max(0, len(events) - MAX_EVENTS),
        "metrics": _metrics(metrics[:MAX_METRICS], case, past, run, references, promises),
        "breakdowns": one_run.breakdowns_of(record, metrics, run),
        "metrics_left_out": max(0, len(metrics) - MAX_METRICS),
        "nodes": {"text": run.nodes, "names": list(nodes[:MAX_NODES]), "number": len(nodes)},
        # unique ids of those on its first node
        "gpus": [plain(gpu) for gpu in one_run.gpus_by_rank(one_run.gpus_of(events), how, case)],
        "placement": in_time(lambda: placement_of(run, test), None),
        "added": added_to("run", state, run, record),
        "scripts": [*_scripts_of_test(test), *job],
        "outputs": outputs,
        "siblings": _nearest(beside, run),
        "gaps": damage,
        "find": query.text("find"),
    }


def _event(event: EventRow, run: RunRow) -> dict[str, Any]:
    """Return an event with the seconds since the run's creation."""
    after = (event.time - run.created) / SECOND_NS
    text = plain(one_run.event_words(event))
    return {"time": event.time, "after": after, "event": event.event, "text": text}


def _plain(former: one_run.FormerVerdict | None) -> one_run.FormerVerdict | None:
    """Return a former verdict with texts that are safe to show."""
    if former is None:
        return None
    reason, by_and_why = plain(former.reason), plain(former.by_and_why)
    return replace(former, reason=reason, by_and_why=by_and_why)


def _run(store: Store, query: PageQuery) -> RunRow:
    """Return the run of this id, or of a unique beginning of it."""
    tag, run_id = query.path["trial"], query.path["run_id"]
    if not tag.strip() or not run_id.strip():
        raise UsageError("a run's address is /runs/TRIAL/RUN")
    return queries.run(store, f"{tag}/{run_id}")


# ---- what ran -----------------------------------------------------------------------------


def _asked(record: Record | None, trial: TrialRow, run: RunRow) -> str:
    """Return what was asked of the scheduler for a run; "" where nothing was, or it is not
    known."""
    if record is None:
        return ""
    try:
        case = TrialFolder(Path(trial.path)).case(run.case)
    except TrialError:
        return ""
    options = case.job if case is not None else JobOptions()
    batch = record.machine.jobs_run_elsewhere
    return described(effective(record.machine.batch, options) if batch else options)


def _environments(run: RunRow, others: Sequence[RunRow]) -> tuple[int, int]:
    """Return how many other runs of the case had the same environment, of how many known ones."""
    if not run.environment:
        return 0, 0
    known = [one.environment for one in others if one.environment and one.row != run.row]
    return known.count(run.environment), len(known)


# ---- figures ------------------------------------------------------------------------------


def _metrics(
    metrics: Sequence[MetricRow],
    case: CaseRow,
    past: dict[tuple[str, str], list[tuple[RunRow, float]]],
    run: RunRow,
    references: References,
    promises: Promises,
) -> list[RunMetric]:
    return [
        RunMetric(
            name=one.name,
            value=one.value,
            unit=one.unit,
            better=one.better,
            expected=expected(one, case, references, run.stage),
            past=[
                {
                    "created": before.created,
                    "trial": before.trial,
                    "run_id": before.run_id,
                    "value": value,
                }
                for before, value in past.get((one.name, one.unit), ())
                if before.row != run.row
            ],
            promised=beside(promises, one.name, one.value, one.unit),
        )
        for one in with_elapsed(metrics, run, references)
    ]


def _nearest(beside: Siblings, run: RunRow) -> Siblings:
    """Return the siblings nearest to the run, for a table."""
    at = next((i for i, one in enumerate(beside.runs) if one.row == run.row), 0)
    start = max(0, min(at - MAX_SIBLINGS // 2, len(beside.runs) - MAX_SIBLINGS))
    return replace(beside, runs=beside.runs[start : start + MAX_SIBLINGS])


# ---- files --------------------------------------------------------------------------------


Script = dict[str, str]  # its title, its text, and what is left out, or why it is absent
Files = tuple[list[Output], list[Script]]


def _files(run: RunRow, search: re.Pattern[str] | None, whole: bool, of_build: str) -> Files:
    """Return the outputs of a run and its job script; of one without a job the log of its build,
    which is in ``of_build``."""
    if of_build:
        built = replace(run, path=of_build)
        return [output_of(built, BUILD_LOG, search, whole)], []
    outputs = [output_of(run, name, search, whole) for name in OUTPUTS]
    job = head(run, "job.sh", MAX_SCRIPT)
    if isinstance(job, str):
        script = {"title": "job.sh", "text": "", "note": job}
        return outputs, [script] if run.path and not run.rehearsed else []
    note = "only its beginning" if job.size > MAX_SCRIPT else ""
    return outputs, [{"title": "job.sh", "text": plain(job.text), "note": note}]


def _test_of(record: Record | None, run: RunRow) -> Test | None:
    return record.tests.get(run.test) if record else None


def _scripts_of_test(test: Test | None) -> list[Script]:
    if test is None:
        return []
    return [
        {"title": f"{kind} script of {test.name}", "text": text[:MAX_SCRIPT], "note": ""}
        for kind, text in test.scripts.items()
    ]
