"""Queries: which runs, which trials, and what they measured.

    newest = runs(store, Filters(failed=True, limit=50))
    one = run(store, "3f2a")                          # by the beginning of its id, as in git
    metrics_of(store, one), events_of(store, one)

A trial is named by its tag, a unique beginning of the tag, or the path of its folder. Where nothing
or more than one thing has that name, a UsageError says what to type. Queries of all trials leave
rehearsals out; name one, or use ``Filters(rehearsed=True)``.
"""

import fcntl
import fnmatch
import os
import statistics
import time
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from seatrial.errors import UsageError
from seatrial.execute.trial_paths import run_directory
from seatrial.files import open_descriptor
from seatrial.journal.events import EVENT_KINDS, ReferencesCorrected, RunReviewed
from seatrial.journal.lock import LONGEST_NAME, is_gone
from seatrial.journal.trial import TrialState
from seatrial.model import codes
from seatrial.model.codes import CODES, NO_VERDICT
from seatrial.model.figures import place_of
from seatrial.model.identifiers import is_like
from seatrial.results.store.schema import Store, marks
from seatrial.results.store.tables import (
    ENDED,
    FAILED,
    GIVEN,
    STATES,
    UNFINISHED,
    CaseRow,
    EventRow,
    Filters,
    MetricRow,
    RunCounts,
    RunRow,
    StoredTest,
    StoredTrial,
    SummaryRow,
    TrialRow,
    chunks,
    read,
    selected,
    typed,
)
from seatrial.units import SECOND_NS

MEASURED = (codes.PASS.number, codes.PERFORMANCE.number)  # runs whose answer is right
NO_OUTCOME = (
    *UNFINISHED,
    codes.RECALLED.number,
    codes.GIVEN.number,
    codes.KNOWN.number,
)
"""Runs that are not over, or never started, known failures, and figures that others gave."""


# ---- runs ---------------------------------------------------------------------------------

# What a run is of, for a query that begins with the runs.
OF_RUNS = (
    " LEFT JOIN trials ON trials.id = runs.trial LEFT JOIN cases ON cases.id = runs.case_row"
    " LEFT JOIN tests ON tests.id = runs.test"
)
NEWEST = "ORDER BY runs.created DESC, runs.id DESC"


def runs(store: Store, filters: Filters) -> list[RunRow]:
    """Return the runs that match, the newest first."""
    with store.reading():
        where, values = conditions(store, filters)
        return run_rows(store, where, values, NEWEST, filters.limit)


def run_rows(
    store: Store, where: str, values: Sequence[Any], order: str, limit: int = 0
) -> list[RunRow]:
    """Return the rows of the runs that a condition and an order choose. An index chooses them
    first, as it holds all that is asked for; then they are looked up. The path of a run is where it
    is now, though its trial was moved or copied. A run that is not over, of a trial that has ended,
    has lost its verdict."""
    tables = f"runs{OF_RUNS}"
    if limit:
        chosen = f"SELECT runs.id FROM runs {where} {order} LIMIT {int(limit)}"
        tables = f"({chosen}) AS chosen LEFT JOIN runs ON runs.id = chosen.id{OF_RUNS}"
        where = ""
    columns = f"{selected(RunRow, 'runs')}, trials.path, trials.state"
    rows = store.rows(f"SELECT {columns} FROM {tables} {where} {order}", values)
    found = []
    for run, row in zip(typed(RunRow, rows), rows, strict=True):
        trial, state = row[-2:]
        path = run_directory(trial, run.test, run.run_id, run.path)
        if path != run.path:
            run = msgspec.structs.replace(run, path=path)
        if state == ENDED and run.code in UNFINISHED:
            reason = run.why or codes.NO_VERDICT.meaning
            code, verdict = codes.NO_VERDICT.number, codes.NO_VERDICT.name
            run = msgspec.structs.replace(run, code=code, verdict=verdict, why=reason)
        found.append(run)
    return found


def count_runs(store: Store, filters: Filters) -> int:
    """Return how many runs match, whatever the limit."""
    return sum(counts(store, filters))


def counts(store: Store, filters: Filters) -> RunCounts:
    """Return how many of the matching runs are in each state, whatever the limit. Within
    ``store.reading()`` the counts agree with ``runs``."""
    plain = Filters(trial=filters.trial, machine=filters.machine, rehearsed=filters.rehearsed)
    if msgspec.structs.replace(filters, limit=0) == plain:
        sums = ", ".join(f"CAST(coalesce(sum({name}), 0) AS BIGINT)" for name in STATES)
        with store.reading():
            chosen = of_trials(store, filters, "trials.id") or "1 = 1"
            return RunCounts(*store.rows(f"SELECT {sums} FROM trials WHERE {chosen}")[0])
    found = [0] * len(STATES)
    for state, _, number in codes_of(store, filters):
        found[state] += number
    return RunCounts(*found)


def codes_of(store: Store, filters: Filters) -> list[tuple[int, int, int]]:
    """Return how many of the matching runs have which state and code: (state, code, number). One
    index holds all of that, in the order in which it is counted."""
    with store.reading():
        where, values = conditions(store, filters, runs="+runs")
        grouped = "GROUP BY runs.state, runs.code"
        return store.rows(
            f"SELECT runs.state, runs.code, count(*) FROM runs {where} {grouped}", values
        )


def run(store: Store, wanted: str) -> RunRow:
    """Return the only run whose id begins so; ``TAG/RUN`` searches one trial only. Raises
    UsageError."""
    tag, _, prefix = wanted.strip().rpartition("/")
    found = _runs_that_begin(store, tag, prefix) if prefix else []
    if len(found) == 1:
        return found[0]
    if not found:
        place = f" in trial {tag}" if tag else ""
        raise UsageError(f"no run begins with {prefix!r}{place}; see `seatrial runs`")
    names = _distinct_names(store, found)
    lines = [f"  {n}  {r.case_name}  {r.verdict}" for n, r in zip(names, found, strict=True)]
    more = [f"  and {len(lines) - MAX_NAMED} more"] if len(lines) > MAX_NAMED else []
    listed = "\n".join([*lines[:MAX_NAMED], *more])
    hint = f"\n({COPIED})" if any(len(name.split("/")) > 2 for name in names) else ""
    raise UsageError(f"{prefix!r} could be several runs; say which:\n{listed}{hint}")


def last_run(store: Store, tag: str = "") -> RunRow:
    """Return the newest run, of a trial if its tag is given. Raises UsageError if there is none."""
    for row in runs(store, Filters(trial=tag, limit=1)):
        return row
    raise UsageError(f"no run is in {f'trial {tag}' if tag else 'the trials'}; see `seatrial runs`")


def _runs_that_begin(store: Store, tag: str, prefix: str) -> list[RunRow]:
    """Return the runs with that id, or else those whose ids begin so; of one trial if its tag is
    given. A whole id is found at once; a beginning takes 30 ms in a trial of 100,000 runs."""
    of_trial, trial = (" AND runs.trial = ?", [trial_row(store, tag)]) if tag else ("", [])
    order = "ORDER BY runs.run_id, runs.id DESC"
    whole = f"WHERE runs.run_id = ?{of_trial}"
    begun = f"WHERE runs.run_id >= ? AND runs.run_id < ?{of_trial}"
    return run_rows(store, whole, [prefix, *trial], order, limit=50) or run_rows(
        store, begun, [prefix, prefix + "\U0010ffff", *trial], order, limit=50
    )


def _distinct_names(store: Store, found: Sequence[RunRow]) -> list[str]:
    """Return TAG/RUN for each run, or the path of its trial where two trials have such a run."""
    names = [f"{run.trial}/{run.run_id}" for run in found]
    return [
        f"{trial_of(store, run).path}/{run.run_id}" if names.count(name) > 1 else name
        for run, name in zip(found, names, strict=True)
    ]


def short_ids(store: Store, ids: Sequence[str], min_length: int = 8) -> dict[str, str]:
    """Return ids cut to one length, at least ``min_length``, at which each still means one run."""
    length = min_length
    sql = "SELECT DISTINCT run_id FROM runs WHERE run_id >= ? AND run_id < ? LIMIT 2"
    for run_id in ids:
        while length < len(run_id):
            prefix = run_id[:length]
            if len(store.rows(sql, (prefix, prefix + "\U0010ffff"))) < 2:
                break
            length += 1
    return {run_id: run_id[:length] for run_id in ids}


def metrics_of(store: Store, run: RunRow) -> list[MetricRow]:
    """Return the figures of a run, by name."""
    return figures(store, [run.row]).get(run.row, [])


def figures(store: Store, runs: Sequence[int]) -> dict[int, list[MetricRow]]:
    """Return the figures of many runs (their rows), by run and name, those of a size by its
    value."""
    result: dict[int, list[MetricRow]] = {}
    for some in chunks(runs):
        sql = (
            f"SELECT {selected(MetricRow, 'metric_names')}, run FROM metrics"
            " JOIN metric_names ON id = metric"
            f" WHERE run IN ({marks(len(some))}) ORDER BY run, name, id"
        )
        rows = store.rows(sql, some)
        for figure, row in zip(typed(MetricRow, rows), rows, strict=True):
            result.setdefault(row[-1], []).append(figure)
    for metrics in result.values():
        metrics.sort(key=lambda figure: place_of(figure.name))
    return result


_EVENT_NAMES = {kind.number: name for name, kind in EVENT_KINDS.items()}


def event_name(number: int, detail: str) -> str:
    """Return the name of an event's row. One of an unknown kind is kept as its detail."""
    return _EVENT_NAMES.get(number, detail)


def events_of(store: Store, run: RunRow) -> list[EventRow]:
    """Return the events of a run in the order of their times. One that was written twice is there
    once."""
    sql = "SELECT time, number, value, detail, text FROM events WHERE run = ? ORDER BY time, seq"
    rows = dict.fromkeys(store.rows(sql, (run.row,)))
    return [
        EventRow(time, event_name(number, detail), value, detail, text)
        for time, number, value, detail, text in rows
    ]


def case_of(store: Store, run: RunRow) -> CaseRow:
    """Return the case of a run."""
    return _cases(store, "WHERE cases.id = (SELECT case_row FROM runs WHERE id = ?)", run.row)[0]


# ---- trials -------------------------------------------------------------------------------


def trials(store: Store) -> list[TrialRow]:
    """Return all trials, the newest first."""
    return sorted(_trials(store, "", ()), key=_made, reverse=True)


def _made(row: TrialRow) -> tuple[int, int]:
    """Return when a trial was created (ns), and its row. A rehearsed one has virtual times, perhaps
    in the future: the time of its record's file counts where that is earlier."""
    if not row.rehearsed:
        return row.created, row.row
    try:
        written = Path(row.path, "trial.json").stat().st_mtime_ns
    except OSError:
        written = row.created
    return min(row.created, written), row.row


def trial(store: Store, wanted: str) -> TrialRow:
    """Return the trial with that tag, with a tag that uniquely begins so, or at that path. Raises
    UsageError."""
    with store.reading():
        return _trials(store, "WHERE trials.id = ?", (trial_row(store, wanted),))[0]


def damaged(store: Store, filters: Filters) -> list[TrialRow]:
    """Return the trials that a question is about and whose journals are damaged, newest first."""
    if not store.rows("SELECT 1 FROM trials WHERE damaged > 0 LIMIT 1"):
        return []
    with store.reading():
        chosen = of_trials(store, filters, "trials.id")
        return _trials(store, f"WHERE damaged > 0{chosen and f' AND {chosen}'}", ())


def trial_of(store: Store, run: RunRow) -> TrialRow:
    """Return the trial of a run."""
    where = "WHERE trials.id = (SELECT trial FROM runs WHERE id = ?)"
    return _trials(store, where, (run.row,))[0]


def _trials(store: Store, where: str, values: Sequence[Any]) -> list[TrialRow]:
    sql = f"FROM trials {where} ORDER BY created DESC, id DESC"
    return list(map(_trial_row, read(store, StoredTrial, "trials", sql, values)))


def _trial_row(trial: StoredTrial) -> TrialRow:
    done = trial.passed + trial.failed + trial.known
    running = trial.running
    waiting = max(trial.waiting, trial.planned - done - running)
    state, end = trial.state, trial.last
    if state == TrialState.RUNNING.value:
        if owned(trial.path):
            end = time.time_ns()
        else:
            state = "interrupted"
    elif state == ENDED:  # none of its jobs is left: a verdict is owed, which `resume` gives
        running, waiting = 0, running + waiting
    elapsed = None
    if trial.started is not None and end is not None:
        elapsed = (end - trial.started) / SECOND_NS
    changed: dict[str, Any] = {
        "row": trial.id,
        "state": state,
        "elapsed": elapsed,
        "runs": max(trial.planned, done + running + waiting),
        "running": running,
        "waiting": waiting,
    }
    stored = msgspec.structs.asdict(trial)
    kept = {name: stored[name] for name in TrialRow.__struct_fields__ if name not in changed}
    return TrialRow(**kept, **changed)


def has_other_references(store: Store, trial: TrialRow) -> bool:
    """Return whether a person judged a trial again by other references than its own."""
    sql = "SELECT 1 FROM trial_events WHERE trial = ? AND number = ? LIMIT 1"
    return bool(store.rows(sql, (trial.row, ReferencesCorrected.number)))


def tests_of(store: Store) -> list[tuple[str, str]]:
    """Return the name and the application of every test."""
    return [(name, app) for name, app in store.rows("SELECT DISTINCT name, app FROM tests")]


def cases_of(store: Store, trial: TrialRow) -> list[CaseRow]:
    """Return the cases of a trial, in the order in which they were asked for."""
    return _cases(store, "WHERE cases.trial = ? ORDER BY cases.id", trial.row)


def _cases(store: Store, where: str, value: int) -> list[CaseRow]:
    sql = f"FROM cases JOIN tests ON tests.id = cases.test {where}"
    return read(store, CaseRow, "cases", sql, (value,))


def summary(store: Store, trial: TrialRow) -> list[SummaryRow]:
    """Return a summary of each case's metrics over its runs of each stage, in the order of the
    cases, stages and metrics."""
    sql = (
        "SELECT cases.case_id, cases.name, runs.stage, metric_names.name, unit, better,"
        " runs.code, value"
        " FROM cases JOIN runs ON runs.case_row = cases.id JOIN metrics ON run = runs.id"
        " JOIN metric_names ON metric_names.id = metric WHERE cases.trial = ?"
        " ORDER BY cases.id, runs.stage, metric_names.name, metric_names.id"
    )
    found = _summarised(store.rows(sql, (trial.row,)))
    return [
        row
        for _, rows in groupby(found, lambda row: (row.case, row.stage))
        for row in sorted(rows, key=lambda row: place_of(row.metric))
    ]


def elapsed_summary(store: Store, trial: TrialRow, tests: Sequence[str]) -> list[SummaryRow]:
    """Return a summary of the time of the script over each case's runs of each stage, for these
    tests."""
    sql = (
        "SELECT cases.case_id, cases.name, runs.stage, 'elapsed', 's', 'lower', runs.code, elapsed"
        " FROM cases JOIN tests ON tests.id = cases.test JOIN runs ON runs.case_row = cases.id"
        f" WHERE cases.trial = ? AND tests.name IN ({marks(len(tests))})"
        " AND elapsed IS NOT NULL ORDER BY cases.id, runs.stage"
    )
    return _summarised(store.rows(sql, (trial.row, *tests))) if tests else []


def _summarised(figures_of_cases: Sequence[Any]) -> list[SummaryRow]:
    """Return a summary of the figures of each case, stage and metric, in their order."""
    groups: dict[tuple[str, ...], list[tuple[int, float]]] = {}
    for *key, code, value in figures_of_cases:
        groups.setdefault(tuple(key), []).append((code, value))
    summaries = []
    for (case, case_name, stage, metric, unit, better), figures in groups.items():
        values = sorted(value for code, value in figures if code in MEASURED)
        middle = statistics.median(values) if values else None
        summaries.append(
            SummaryRow(
                case=case,
                case_name=case_name,
                stage=stage,
                metric=metric,
                unit=unit,
                better=better,
                n=len(values),
                excluded=len(figures) - len(values),
                least=values[0] if values else None,
                median=middle,
                largest=values[-1] if values else None,
                spread=(
                    (values[-1] - values[0]) / abs(middle) if middle and len(values) > 1 else None
                ),
            )
        )
    return summaries


def failed_cases(store: Store, trial: TrialRow) -> list[str]:
    """Return the ids of the cases of which a run did not pass, or none has its verdict. Runs whose
    case runs again and recalled runs do not count."""
    sql = (
        "SELECT cases.case_id FROM cases LEFT JOIN runs ON runs.case_row = cases.id"
        f" AND runs.judged IS NOT NULL AND NOT runs.again AND runs.code <> {codes.RECALLED.number}"
        " WHERE cases.trial = ?"
        " GROUP BY cases.id, cases.case_id HAVING count(runs.id) = 0 OR"
        " max(CASE WHEN runs.code IN (?, ?) THEN 0 ELSE 1 END) = 1 ORDER BY cases.id"
    )
    return [case for (case,) in store.rows(sql, (trial.row, codes.PASS.number, codes.KNOWN.number))]


# ---- liveness ------------------------------------------------------------------------------------
#
# Whether a process runs a trial now. A journal cannot say so, as a killed driver writes nothing.
#
# The owner holds a lock on ``journal.jsonl.lock`` and has written its name into it. If that is a
# process of this host that is gone, the trial has no owner. Else the lock itself is tried, shared
# and for an instant.


def owned(trial: str) -> bool:
    """Return whether the trial in that folder has a living owner."""
    lock = Path(trial) / "journal.jsonl.lock"
    try:
        descriptor = open_descriptor(lock, os.O_RDONLY)
    except OSError:
        return False
    try:
        if is_gone(os.read(descriptor, LONGEST_NAME).decode(errors="replace")):
            return False
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        return False
    except OSError:  # held, or this file system cannot say: then the owner's name stands
        return True
    finally:
        os.close(descriptor)


# ---- exclusions ----------------------------------------------------------------------------------
#
# The runs that both sides agreed to leave out of the criteria, as lists mark them.


WITHDRAWN = "withdrawn"  # how the detail of an event ends that takes earlier ones back


def excluded_runs(store: Store, runs: Sequence[int]) -> set[int]:
    """Return those of the runs (rows of the store) that are excluded by agreement."""
    found: set[int] = set()
    for rows in chunks(runs):
        sql = (
            "SELECT run, value, detail FROM events"
            f" WHERE run IN ({marks(len(rows))}) AND number = {RunReviewed.number:d}"
            " ORDER BY run, time, seq"
        )
        for run, value, detail in store.rows(sql, rows):
            if detail.endswith(WITHDRAWN):
                found.discard(run)
            elif value:
                found.add(run)
    return found


# ---- filters -------------------------------------------------------------------------------------
#
# SQL conditions for ``Filters``.
#
#     where, values = conditions(store, Filters(machine="frost*", failed=True))
#     store.rows(f"SELECT count(*) FROM runs {where}", values)
#
# Patterns are matched in Python, on the names of tests, machines and toolchains. The query has the
# rows found so. It uses the table ``runs`` alone, whose indexes then suffice.


NOTHING = "1 = 0"
MAX_NAMED = 5
COPIED = "a store that was copied with its trials knows both; `seatrial store rebuild`"


class Condition(Struct, frozen=True):
    """A condition in SQL, "" for none, and its parameters."""

    sql: str = ""
    values: Sequence[Any] = ()


def conditions(
    store: Store, filters: Filters, *more: str, runs: str = "runs", tests: str = "+runs.test"
) -> tuple[str, list[Any]]:
    """Return the condition of the matching runs, with ``more`` conditions, and its parameters. The
    unary plus stops a database from using an index on that column, so that it follows the index of
    the order. ``+runs`` does so for all columns; ``runs.test`` lets it find runs by their tests."""
    parts = [
        *map(Condition, more),
        Condition(of_trials(store, filters, f"{runs}.trial")),
        Condition(_of_tests(store, filters, tests)),
        Condition(f"{runs}.created >= {filters.since:d}" if filters.since else ""),
        Condition(f"{runs}.created < {filters.until:d}" if filters.until else ""),
        Condition(_of_states(filters, runs)),
        Condition(_of_verdicts(set(map(verdict_number, filters.verdicts)))),
        _of_cause(store, filters.cause),
        _of_toolchain(store, filters.toolchain),
    ]
    parts = [part for part in parts if part.sql]
    where = " AND ".join(part.sql for part in parts)
    return f"WHERE {where}" if where else "", [value for part in parts for value in part.values]


def _of_states(filters: Filters, runs: str) -> str:
    if not (filters.failed or filters.states):
        return ""
    states = set(map(state_number, filters.states)) or {FAILED}
    if filters.failed:
        states &= {FAILED}
    if not states:
        return NOTHING
    if states == {FAILED}:
        return f"{runs}.state = {FAILED}"  # they are few: an index has them
    return f"+runs.state IN ({sql_list(sorted(states))})"


def _of_cause(store: Store, wanted: str) -> Condition:
    if not wanted:
        return Condition()
    rows = store.rows("SELECT DISTINCT cause FROM runs WHERE cause <> ''")
    matching = [cause for (cause,) in rows if _is_cause(cause, wanted)]
    if not matching:
        return Condition(NOTHING)
    return Condition(f"+runs.cause IN ({marks(len(matching))})", matching)


def _of_toolchain(store: Store, wanted: str) -> Condition:
    if not wanted:
        return Condition()
    names = [name for (name,) in store.rows("SELECT DISTINCT toolchain FROM cases")]
    matching = [name for name in names if fnmatch.fnmatchcase(name, wanted)]
    if not matching:
        return Condition(NOTHING)
    if len(matching) == len(names):
        return Condition()
    cases = f"SELECT id FROM cases WHERE toolchain IN ({marks(len(matching))})"
    return Condition(f"+runs.case_row IN ({cases})", matching)


def _is_cause(cause: str, wanted: str) -> bool:
    """Return whether a cause is meant: by a pattern, or a part of it."""
    text, asked = cause.lower(), wanted.lower()
    return fnmatch.fnmatchcase(text, asked) if set(asked) & set("*?[") else asked in text


class _KnownTrial(Struct):
    """What filters ask of a trial."""

    id: int
    tag: str
    path: str
    machine: str
    rehearsed: bool
    state: str


def of_trials(store: Store, filters: Filters, column: str) -> str:
    """Return the condition that a column is the row of a matching trial; "" where all match."""
    known = read(store, _KnownTrial, "trials", "FROM trials")
    named = trial_row(store, filters.trial) if filters.trial else None
    chosen = [trial.id for trial in known if _is_chosen(trial, filters, named)]
    return chosen_rows(column, chosen, [trial.id for trial in known])


def _is_chosen(trial: _KnownTrial, filters: Filters, named: int | None) -> bool:
    """Return whether a trial matches. Rehearsals, and figures that somebody gave, must be named."""
    if filters.machine and not fnmatch.fnmatchcase(trial.machine, filters.machine):
        return False
    if named is not None:
        return trial.id == named
    return trial.state != GIVEN and (filters.rehearsed or not trial.rehearsed)


def _of_tests(store: Store, filters: Filters, column: str) -> str:
    if not filters.test and not filters.tag and filters.tests is None:
        return ""

    def is_chosen(test: StoredTest) -> bool:
        return (
            is_like(test.name, filters.test)
            and (filters.tests is None or test.name in filters.tests)
            and (not filters.tag or f"\n{filters.tag}\n" in test.tags)
        )

    known = read(store, StoredTest, "tests", "FROM tests")
    chosen = [test.id for test in known if is_chosen(test)]
    return chosen_rows(column, chosen, [test.id for test in known])


def chosen_rows(column: str, chosen: list[int], known: list[int]) -> str:
    """Return the condition that a column is one of the chosen rows; "" where all are chosen."""
    if len(chosen) == len(known) and known:
        return ""
    if not chosen:
        return NOTHING
    if len(chosen) == 1:
        return f"{column} = {chosen[0]}"
    if 2 * len(chosen) <= len(known):
        return f"{column} IN ({sql_list(chosen)})"
    left_out = set(known) - set(chosen)
    return f"{column} NOT IN ({sql_list(sorted(left_out))})"


def trial_row(store: Store, wanted: str) -> int:
    """Return the row of the trial with that tag, with a tag that uniquely begins so, or at that
    path. Raises UsageError."""
    paths = _paths(wanted) if "/" in wanted else ("", "")
    where = "WHERE substr(tag, 1, ?) = ? OR path IN (?, ?) ORDER BY created DESC"
    values = (len(wanted), wanted, *paths)
    begun = read(store, _KnownTrial, "trials", f"FROM trials {where}", values) if wanted else []
    exact = [trial for trial in begun if wanted == trial.tag or trial.path in paths]
    if not begun:
        raise _no_trial(store, wanted)
    if exact:
        return _only(wanted, exact, [trial.path for trial in exact], f" ({COPIED})")
    return _only(wanted, begun, [trial.tag for trial in begun], "")


def _no_trial(store: Store, wanted: str) -> UsageError:
    latest = store.rows("SELECT tag FROM trials ORDER BY created DESC LIMIT 1")
    hint = "".join(f"; the latest is {tag}" for (tag,) in latest)
    return UsageError(f"no trial {wanted!r}{hint}; see `seatrial trials`")


def _only(wanted: str, trials: Sequence[_KnownTrial], names: Sequence[str], hint: str) -> int:
    """Return the row of the only one of these trials. Raises UsageError if there are several."""
    if len(trials) == 1:
        return trials[0].id
    more = ", ..." if len(names) > MAX_NAMED else ""
    raise UsageError(
        f"{wanted!r} could be several trials; say which: {', '.join(names[:MAX_NAMED])}{more}{hint}"
    )


def _paths(wanted: str) -> tuple[str, str]:
    """Return the paths under which a trial's folder may be recorded: itself may be a link in the
    folder of trials."""
    path = Path(wanted).absolute()
    return os.path.realpath(path), str(Path(os.path.realpath(path.parent), path.name))


def state_number(name: str) -> int:
    """Return the number of a state: ``passed``, ``running``, ``waiting``, ``failed``, ``known`` or
    ``again``. Raises UsageError."""
    if name not in STATES:
        raise UsageError(f"{name!r} is no state of runs; one of: {', '.join(STATES)}")
    return STATES[name]


def _of_verdicts(wanted: set[int]) -> str:
    """Return the condition of runs with these codes, "" for none. A run that is not over, of a
    trial that has ended, has no verdict."""
    if not wanted:
        return ""
    ended = f"runs.trial IN (SELECT id FROM trials WHERE state = '{ENDED}')"
    lost = f"(+runs.code IN ({sql_list(UNFINISHED)}) AND {ended})"
    found = f"+runs.code IN ({sql_list(wanted)})"
    if wanted & set(UNFINISHED):
        found = f"({found} AND NOT {lost})"
    return f"({found} OR {lost})" if NO_VERDICT.number in wanted else found


def verdict_number(name: str) -> int:
    """Return the code of a verdict's name or number: ``wrong answer``, ``wrong-answer`` or ``2``.
    Raises UsageError."""
    plain = name.strip().lower().replace("-", " ").replace("_", " ")
    for code in CODES.values():
        if plain == code.name or name.strip() == str(code.number):
            return code.number
    known = ", ".join(code.name for code in CODES.values())
    raise UsageError(f"--verdict: {name!r} is no verdict; one of: {known}")


def sql_list(numbers: Iterable[int]) -> str:
    """Return numbers as SQL lists them."""
    return ", ".join(map(str, numbers))
