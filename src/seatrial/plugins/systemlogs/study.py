"""What system logs had while runs were under way: the command and the page ``logs``, the part of a
run's page, and what ``suspects`` says of nodes.

One kernel event is one finding, however many runs have it in their windows, and however many
sources log it: lines of a node that match a rule in one second are counted once.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from markupsafe import Markup
from msgspec import Struct
from msgspec.structs import asdict

from seatrial.errors import UsageError
from seatrial.execute.trial_record import Record
from seatrial.hooks import value_of
from seatrial.model import codes
from seatrial.model.node_set import fold, unfold_or_empty
from seatrial.plugins.facts.changed import slow_facts
from seatrial.plugins.facts.node_facts import of_nodes
from seatrial.plugins.systemlogs.reading import rules_for
from seatrial.plugins.systemlogs.shapes import grouped
from seatrial.results.compare import Difference
from seatrial.results.fact_sources import LATELY_NS, SlowFacts
from seatrial.results.history import History
from seatrial.results.selection import Side
from seatrial.results.store.schema import Store, marks
from seatrial.results.store.tables import RunOutcome, RunRow, chunks
from seatrial.show.draw.maps import AmountScale, colour
from seatrial.show.draw.svg import LINE, WIDTH, cut, hover, picture, rect, words
from seatrial.show.page import Cell, Chart, Column, Link, Page, Part, Section, Table, Text
from seatrial.show.web.nodes import View
from seatrial.show.web.state.server_state import ServerState
from seatrial.units import SECOND_NS, count, listed, moment_of

HOUR_S = 3600
MAX_ROWS = 200  # of a table
MAX_LINKS = 3  # runs of a row
MAX_FAULTS = 10
MAX_HOURS, MAX_NODES = 72, 60  # of the chart
MAX_RULES = 3  # of a node, in a sentence
_LEFT, _CELL_HEIGHT = 90.0, 16.0

_JUDGED_BAD = "runs that did not pass"


# ---- what is known -------------------------------------------------------------------------------


class ReadRun(NamedTuple):
    """A run whose logs were read."""

    row: int
    run_id: str
    trial: str
    machine: str
    test: str
    code: int
    nodes: str
    #: Its window, over all sources, in s.
    since: int
    until: int
    faults: list[str]

    @property
    def passed(self) -> bool:
        return self.code == codes.PASS.number

    @property
    def went_wrong(self) -> bool:
        """Whether it has a verdict that is no pass, and was not ended because a person willed."""
        return not self.passed and self.code not in codes.WITHDRAWN

    @property
    def link(self) -> Link:
        return Link(self.run_id, f"/runs/{self.trial}/{self.run_id}")


class Finding(Struct, frozen=True):
    """Lines of a node that match a rule in one hour, which begins at ``hour`` (s since 1970)."""

    machine: str
    node: str
    rule: str
    hour: int
    lines: int
    runs: list[str]
    #: How many of these runs did not pass.
    wrong: int


class UnusualShape(Struct, frozen=True):
    """Lines of a shape that some runs have which did not pass, and no run that passed."""

    shape: str
    lines: int
    runs: list[str]
    nodes: str
    #: The chance of this if the runs with the shape were any runs, times the shapes that were
    #: compared.
    p: float


class Logs(Struct, frozen=True):
    """What logs had. ``passed`` and ``wrong`` are numbers of runs; ``shortened`` of the runs that
    passed had more shapes than are kept."""

    runs: dict[int, ReadRun]
    findings: list[Finding]
    unusual: list[UnusualShape]
    passed: int
    wrong: int
    shortened: int


_RUNS = """SELECT reads.run, runs.run_id, trials.tag, trials.machine, tests.name, runs.code,
 runs.nodes, reads.since, reads.until, reads.source, reads.faults
 FROM systemlogs_reads AS reads CROSS JOIN runs CROSS JOIN trials CROSS JOIN tests
 WHERE runs.id = reads.run AND trials.id = runs.trial AND tests.id = runs.test"""


def runs_read(store: Store, machine: str = "", since: int = 0, trial: str = "") -> list[ReadRun]:
    """Return the runs whose logs were read, of windows that end at ``since`` (in s) or later."""
    conditions, values = ["reads.until >= ?"], list[object]([since])
    for column, value in (("trials.machine", machine), ("trials.tag", trial)):
        if value:
            conditions.append(f"{column} = ?")
            values.append(value)
    return _runs_where(store, " AND ".join(conditions), values)


def runs_of_rows(store: Store, rows: Collection[int]) -> list[ReadRun]:
    """Return those of some runs, by their rows, whose logs were read."""
    return [
        run
        for some in chunks(sorted(rows))
        for run in _runs_where(store, f"reads.run IN ({marks(len(some))})", some)
    ]


def _runs_where(store: Store, condition: str, values: Sequence[object]) -> list[ReadRun]:
    found: dict[int, ReadRun] = {}
    sql = f"{_RUNS} AND {condition} ORDER BY reads.run, reads.source"
    for row, run_id, tag, name, test, code, nodes, begin, end, source, faults in store.rows(
        sql, values
    ):
        told = [f"{source}: {fault}" for fault in faults.splitlines()]
        known = found.get(row)
        if known is not None:
            begin, end = min(begin, known.since), max(end, known.until)
            told = [*known.faults, *told]
        found[row] = ReadRun(row, run_id, tag, name, test, code, nodes, begin, end, told)
    return list(found.values())


_FIRST_READ = """SELECT trials.machine, min(reads.since)
 FROM systemlogs_reads AS reads CROSS JOIN trials WHERE trials.id = reads.trial
 GROUP BY trials.machine"""
_UNREAD = """SELECT runs.run_id, trials.tag FROM trials CROSS JOIN runs
 WHERE runs.trial = trials.id AND NOT trials.rehearsed
 AND runs.judged IS NOT NULL AND runs.judged >= ?
 AND (runs.job_started IS NOT NULL OR runs.script_started IS NOT NULL)
 AND runs.id NOT IN (SELECT run FROM systemlogs_reads)"""


def unread_of_trial(store: Store, trial: str) -> list[str]:
    """Return the ids of the runs of a trial that started and whose logs were not read."""
    return [run for run, _ in store.rows(f"{_UNREAD} AND trials.tag = ?", [0, trial])]


def unread_runs(store: Store, machine: str = "", trial: str = "", since: int = 0) -> Counter[str]:
    """Return how many runs of each trial started whose logs were not read, though those of earlier
    runs of the machine were; judged at ``since`` (in s) or later."""
    unread: Counter[str] = Counter()
    for name, first in store.rows(_FIRST_READ):
        if machine in ("", name):
            values = [max(first, since) * SECOND_NS, name]
            for _, tag in store.rows(f"{_UNREAD} AND trials.machine = ?", values):
                unread[tag] += trial in ("", tag)
    return +unread


def logs_of(store: Store, runs: Sequence[ReadRun], node: str = "", rule: str = "") -> Logs:
    """Return what the logs of runs had: each line once, however many runs saw it."""
    by_row = {run.row: run for run in runs}
    wrong = sum(run.went_wrong for run in runs)
    passed = sum(run.passed for run in runs)
    unusual, shortened = _unusual(store, by_row, passed, wrong)
    findings = [each for each in _findings(store, runs) if rule in ("", each.rule)]
    if node:
        chosen = set(unfold_or_empty(node)) or {node}
        findings = [each for each in findings if each.node in chosen]
        unusual = [each for each in unusual if not chosen.isdisjoint(unfold_or_empty(each.nodes))]
    return Logs(by_row, findings, unusual, passed, wrong, shortened)


def _rows_of(store: Store, columns: str, table: str, runs: Iterable[int]) -> Iterator[Any]:
    for some in chunks(list(runs)):
        yield from store.rows(
            f"SELECT {columns} FROM {table} WHERE run IN ({marks(len(some))})", some
        )


def _findings(store: Store, read: Sequence[ReadRun]) -> list[Finding]:
    """Return the findings of runs by node, rule and hour, the latest first."""
    runs = {run.row: run for run in read}
    lines: dict[tuple[str, str, str, int], int] = {}
    seen: dict[tuple[str, str, str, int], set[int]] = defaultdict(set)
    columns = "run, node, rule, second, lines"
    for run, node, rule, second, number in _rows_of(store, columns, "systemlogs_findings", runs):
        about = runs[run].machine, node, rule
        lines[*about, second] = max(number, lines.get((*about, second), 0))
        seen[*about, second - second % HOUR_S].add(run)
    by_hour: Counter[tuple[str, str, str, int]] = Counter()
    for (machine, node, rule, second), number in lines.items():
        by_hour[machine, node, rule, second - second % HOUR_S] += number
    found = [
        Finding(
            *key,
            number,
            [runs[run].run_id for run in sorted(seen[key])],
            sum(runs[run].went_wrong for run in seen[key]),
        )
        for key, number in by_hour.items()
    ]
    return sorted(found, key=lambda each: (-each.hour, each.machine, each.node, each.rule))


def _unusual(
    store: Store, runs: Mapping[int, ReadRun], passed: int, wrong: int
) -> tuple[list[UnusualShape], int]:
    """Return the shapes that no run has which passed, the surest first; and of how many runs that
    passed not all shapes are kept."""
    seen, shortened = _shapes_seen(store, runs)
    found = []
    for shape, on_nodes in seen.items():
        having = {run.row: run for of_nodes in on_nodes.values() for run, _ in of_nodes}
        if any(run.passed for run in having.values()):
            continue
        bad = [having[row] for row in sorted(having) if having[row].went_wrong]
        if bad:
            chance = min(1.0, len(seen) * _chance(len(bad), passed, wrong))
            found.append(_unusual_shape(shape, on_nodes, bad, chance))
    of_passed = sum(runs[row].passed for row in shortened)
    return sorted(found, key=lambda each: (each.p, -len(each.runs), each.shape)), of_passed


def _unusual_shape(
    shape: str, on_nodes: _OnNodes, bad: Sequence[ReadRun], chance: float
) -> UnusualShape:
    nodes = {node for folded in on_nodes for node in unfold_or_empty(folded)}
    lines = sum(map(_lines_at_least, on_nodes.values()))
    return UnusualShape(shape, lines, [run.run_id for run in bad], fold(nodes), chance)


_OnNodes = Mapping[str, Sequence[tuple[ReadRun, int]]]
"""The runs that have a shape, each with its number of lines, by their nodes, folded."""


def _shapes_seen(store: Store, runs: Mapping[int, ReadRun]) -> tuple[dict[str, _OnNodes], set[int]]:
    """Return where each shape was seen; and the rows of the runs of which not all shapes are
    kept."""
    texts = dict(store.rows("SELECT shape, text FROM systemlogs_texts ORDER BY shape"))
    groups = grouped(texts.values())
    seen: dict[str, dict[str, list[tuple[ReadRun, int]]]] = defaultdict(lambda: defaultdict(list))
    shortened = set()
    columns = "run, shape, lines, nodes"
    for run, shape, number, folded in _rows_of(store, columns, "systemlogs_shapes", runs):
        if shape in texts:
            seen[groups[texts[shape]]][folded or runs[run].nodes].append((runs[run], number))
        else:
            shortened.add(run)
    return dict(seen), shortened


def _lines_at_least(seen: Iterable[tuple[ReadRun, int]]) -> int:
    """Return how many lines runs on the same nodes saw together. Runs whose windows overlap may
    have seen the same ones, so of these the run with most counts."""
    total = most = until = 0
    for run, lines in sorted(seen, key=lambda each: each[0].since):
        if run.since > until:
            total, most = total + most, 0
        most, until = max(most, lines), max(until, run.until)
    return total + most


def _chance(having: int, passed: int, wrong: int) -> float:
    """Return the chance that so many runs, drawn from all, are among those that went wrong."""
    chance = 1.0
    for i in range(having):
        chance *= (wrong - i) / (passed + wrong - i)
    return chance


# ---- the command and the page --------------------------------------------------------------------


def logs(
    store: Store,
    machine: str,
    trial: str,
    since: str,
    node: str,
    rule: str,
    by: str,
    unusual: str,
) -> Page:
    """Show what system logs had while runs were under way: by node, rule and hour.

    The machine's file names the logs (`logs:`). They are read in the window of each run: from a
    little before its start to a little after its end. A line is counted once, however many runs
    have it in their windows. Beside rules, shapes of lines are told that no run has which passed;
    p is the chance of that, times the number of shapes. Lines themselves are not kept.
    """
    start = _start_of(since)
    runs = runs_read(store, machine, start, trial)
    if not runs:
        raise UsageError(
            "no system logs were read in the windows of these runs; give `logs:` in the machine's "
            "file, and run"
        )
    found = logs_of(store, runs, node, rule)
    parts: list[Section] = []
    if not unusual:
        parts += _findings_sections(found, by)
    parts.append(Section("Shapes that no run has which passed", list(_unusual_parts(found))))
    unread = unread_runs(store, machine, trial, start)
    if faults := list(_faults_parts(found.runs.values(), unread)):
        parts.insert(0, Section("What could not be read", faults))
    return Page(
        "System logs",
        parts,
        summary=_summary(found),
        records=lambda: _records(found, unusual) | {"not_read": unread},
        lines=lambda: _lines(found, unusual),
    )


def _start_of(since: str) -> int:
    try:
        return moment_of(since) // SECOND_NS if since else 0
    except ValueError as error:
        raise UsageError(f"--since: {error}") from error


def _summary(found: Logs) -> str:
    lines = sum(each.lines for each in found.findings)
    nodes = {(each.machine, each.node) for each in found.findings}
    short = sum(bool(run.faults) for run in found.runs.values())
    said = f"{count(len(found.findings), 'finding')}"
    if found.findings:
        said += f" ({count(lines, 'line')} on {count(len(nodes), 'node')})"
    said += f" in the system logs of {count(len(found.runs), 'run')}"
    if found.unusual:
        said += f"; {count(len(found.unusual), 'shape')} of lines that no run has which passed"
    if short:
        said += f"; of {count(short, 'run')} not all could be read"
    return said + "."


def _not_read(trial: str) -> str:
    return (
        "not read, as its driver ended before, or still waits; "
        f"`seatrial syslog --unread {trial}` reads them"
    )


_FAULTS = (Column("Runs", "count"), Column("What, and why", fold=True))


def _faults_parts(runs: Iterable[ReadRun], unread: Mapping[str, int]) -> Iterator[Part]:
    faults = Counter(fault for run in runs for fault in dict.fromkeys(run.faults))
    for trial, number in unread.items():
        faults[f"of {trial}: {_not_read(trial)}"] = number
    if faults:
        told = faults.most_common(MAX_FAULTS)
        rows: list[list[Cell]] = [[number, fault] for fault, number in told]
        yield Text("No line found there does not mean that there was none.", "notice")
        yield Table(_FAULTS, rows, total=len(faults))


_BY = {
    "finding": ("Node", "Rule", "Hour"),
    "node": ("Node",),
    "rule": ("Rule",),
    "hour": ("Hour",),
}


def _findings_sections(found: Logs, by: str) -> Iterator[Section]:
    if not found.findings:
        yield Section("Lines that match rules", ["No rule matches a line."])
        return
    titles = _BY[by]
    several = len({each.machine for each in found.findings}) > 1
    columns = [
        *([Column("Machine", spare=1)] if several else []),
        *(Column(title, "time" if title == "Hour" else "text") for title in titles),
        Column("Lines", "count"),
        Column("Runs", "count"),
        Column("Not passed", "count"),
        Column("Which", spare=2, fold=True),
    ]
    by_id = {run.run_id: run for run in found.runs.values()}
    rows: list[list[Cell]] = []
    for key, lines, ids in _by_key(found.findings, titles, several):
        wrong = sum(by_id[each].went_wrong for each in ids)
        rows.append([*key, lines, len(ids), wrong, _which(by_id, ids)])
    cells = Counter[tuple[str, int]]()
    for each in found.findings:
        cells[each.node, each.hour] += each.lines
    heat = Chart(partial(draw_heat, cells), "Lines that match rules, by node and hour (UTC)")
    table = Table(columns, rows[:MAX_ROWS], total=len(rows))
    yield Section("Lines that match rules", [table, heat])


def _which(by_id: Mapping[str, ReadRun], ids: Sequence[str]) -> list[Cell]:
    links: list[Cell] = [by_id[each].link for each in ids[:MAX_LINKS]]
    return [*links, f"and {len(ids) - MAX_LINKS} more"] if len(ids) > MAX_LINKS else links


def _by_key(
    findings: Sequence[Finding], titles: Sequence[str], several: bool
) -> list[tuple[list[str | int], int, list[str]]]:
    """Return findings put together by some of their columns: what they share, their lines and the
    ids of their runs; those with the most lines first, hours in their order."""
    lines: Counter[tuple[str | int, ...]] = Counter()
    runs: dict[tuple[str | int, ...], dict[str, None]] = defaultdict(dict)
    for each in findings:
        hour = each.hour * SECOND_NS
        of: dict[str, str | int] = {"Node": each.node, "Rule": each.rule, "Hour": hour}
        key = (*([each.machine] if several else []), *(of[title] for title in titles))
        lines[key] += each.lines
        runs[key].update(dict.fromkeys(each.runs))
    together = [(list(key), number, list(runs[key])) for key, number in lines.items()]
    if "Hour" not in titles:
        together.sort(key=lambda row: -row[1])
    return together


_UNUSUAL = (
    Column("Shape", fold=True),
    Column("Lines", "count"),
    Column("Runs", "count"),
    Column("p", "number"),
    Column("Nodes", fold=True, spare=1),
    Column("Which", fold=True, spare=2),
)


def _unusual_parts(found: Logs) -> Iterator[Part]:
    if not found.wrong or not found.passed:
        which = _JUDGED_BAD if not found.wrong else "runs that passed"
        yield f"None can be told: there are no {which} among these."
        return
    yield (
        f"{count(found.wrong, 'run')} that did not pass, against {found.passed} that passed. "
        "With few runs, a shape may be missing by chance. Where windows overlap, lines count once."
    )
    if found.shortened:
        yield Text(
            f"{count(found.shortened, 'run')} that passed had more shapes than are kept: a shape "
            "here may be among those.",
            "notice",
        )
    if not found.unusual:
        yield "Each shape is in a run that passed, too."
        return
    by_id = {run.run_id: run for run in found.runs.values()}
    rows: list[list[Cell]] = [
        [
            each.shape,
            each.lines,
            len(each.runs),
            each.p,
            each.nodes,
            _which(by_id, each.runs),
        ]
        for each in found.unusual[:MAX_ROWS]
    ]
    yield Table(_UNUSUAL, rows, total=len(found.unusual))


def _records(found: Logs, unusual: str) -> dict[str, Any]:
    faulty = [run for run in found.runs.values() if run.faults]
    return {
        "runs": len(found.runs),
        "passed": found.passed,
        "wrong": found.wrong,
        "findings": [] if unusual else [asdict(each) for each in found.findings],
        "unusual": [asdict(each) for each in found.unusual],
        "unread": [
            {"run_id": run.run_id, "trial": run.trial, "faults": run.faults} for run in faulty
        ],
    }


def _lines(found: Logs, unusual: str) -> Iterator[Sequence[object]]:
    if unusual:
        yield "shape", "lines", "runs", "nodes", "p"
        for one in found.unusual:
            yield one.shape, one.lines, len(one.runs), one.nodes, one.p
        return
    yield "machine", "node", "rule", "hour", "lines", "runs", "wrong"
    for each in found.findings:
        hour = time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime(each.hour))
        yield each.machine, each.node, each.rule, hour, each.lines, len(each.runs), each.wrong


def draw_heat(cells: Mapping[tuple[str, int], int], width: float = WIDTH) -> Markup:
    """Draw lines by node (rows) and hour (columns), the latest hours and the nodes with most."""
    totals: Counter[str] = Counter()
    for (node, _), lines in cells.items():
        totals[node] += lines
    nodes = sorted(node for node, _ in totals.most_common(MAX_NODES))
    last = max(hour for _, hour in cells)
    first = max(min(hour for _, hour in cells), last - (MAX_HOURS - 1) * HOUR_S)
    hours = range(first, last + 1, HOUR_S)
    size = min(24.0, (width - _LEFT) / len(hours))
    scale = AmountScale(list(cells.values()))
    parts = []
    for row, node in enumerate(nodes):
        top = LINE + row * _CELL_HEIGHT
        parts.append(words(cut(node, _LEFT - 8), _LEFT - 6, top + 12, anchor="end", full=node))
        for column, hour in enumerate(hours):
            lines = cells.get((node, hour), 0)
            told = f"{node}, {_clock(hour)}: {count(lines, 'line')}"
            place = _LEFT + column * size, top, size - 1, _CELL_HEIGHT - 1
            parts.append(rect(*place, hover(told), fill=colour(scale.level(lines))))
    for column in range(0, len(hours), max(1, round(120 / size))):
        parts.append(words(_clock(hours[column]), _LEFT + column * size, LINE - 5, colour="muted"))
    height = LINE + len(nodes) * _CELL_HEIGHT + 2
    about = "A row for each node and a column for each hour, coloured by lines"
    return picture(parts, width, height, "Lines by node and hour", about, "heat")


def _clock(hour: int) -> str:
    return time.strftime("%m-%d %H:%M", time.gmtime(hour))


# ---- beside other answers ------------------------------------------------------------------------


class RunLogs(Struct, frozen=True, kw_only=True):
    """What the logs of one run had: of each rule and node how many lines, what it does and what to
    do; the shapes with the number of lines; what could not be read."""

    lines: int
    since: int
    until: int
    findings: list[dict[str, Any]]
    shapes: list[dict[str, Any]]
    unkept: int
    faults: list[str]


def on_run(state: ServerState, run: RunRow, record: Record | None) -> dict[str, RunLogs | None]:
    """Return what the page of a run shows of system logs."""
    return {"system_logs": of_run(state.store(), run, record)}


def of_run(store: Store, run: RunRow, record: Record | None) -> RunLogs | None:
    """Return what the logs of a run had; None if none were read."""
    sql = "SELECT source, since, until, lines, faults FROM systemlogs_reads WHERE run = ?"
    sources = store.rows(f"{sql} ORDER BY source", [run.row])
    if not sources:
        return _unread_logs(run, record)
    shapes = _shapes_of_run(store, run.row)
    names, starts, ends, lines, faults = zip(*sources, strict=True)
    return RunLogs(
        lines=sum(lines),
        since=min(starts) * SECOND_NS,
        until=max(ends) * SECOND_NS,
        findings=_findings_of_run(store, run.row, record),
        shapes=[each for each in shapes if each["shape"]],
        unkept=sum(each["lines"] for each in shapes if not each["shape"]),
        faults=[
            f"{source}: {fault}"
            for source, told in zip(names, faults, strict=True)
            for fault in told.splitlines()
        ],
    )


def _unread_logs(run: RunRow, record: Record | None) -> RunLogs | None:
    """Return what is said of a run whose logs were not read; None if there is nothing to read."""
    has_logs = record is not None and bool(value_of(record.machine, "logs", list))
    if not has_logs or run.judged is None or run.job_started is None:
        return None
    return RunLogs(
        lines=0, since=0, until=0, findings=[], shapes=[], unkept=0, faults=[_not_read(run.trial)]
    )


def _findings_of_run(store: Store, row: int, record: Record | None) -> list[dict[str, Any]]:
    """Return the lines of a run that match rules, by node and rule."""
    own = record.machine.log_rules if record is not None else []
    advice = {rule.name: f"{rule.cause}: {rule.advice}" for rule in rules_for(own)}
    sql = "SELECT node, rule, sum(lines), min(second), max(second) FROM systemlogs_findings"
    found = store.rows(f"{sql} WHERE run = ? GROUP BY node, rule ORDER BY node, rule", [row])
    return [
        {
            "node": node,
            "rule": rule,
            "lines": int(lines),
            "first": first * SECOND_NS,
            "last": last * SECOND_NS,
            "advice": advice.get(rule, ""),
        }
        for node, rule, lines, first, last in found
    ]


def _shapes_of_run(store: Store, row: int) -> list[dict[str, Any]]:
    """Return the shapes of the lines of a run; "" for those that are not kept."""
    sql = (
        "SELECT shapes.lines, shapes.nodes, coalesce(texts.text, '')"
        " FROM systemlogs_shapes AS shapes LEFT JOIN systemlogs_texts AS texts"
        " ON texts.trial = shapes.trial AND texts.shape = shapes.shape WHERE shapes.run = ?"
        " ORDER BY shapes.lines DESC, shapes.shape"
    )
    return [
        {"shape": text, "lines": lines, "nodes": nodes}
        for lines, nodes, text in store.rows(sql, [row])
    ]


def differences(store: Store, first: Side, second: Side) -> list[Difference]:
    """Return the rules that match lines of the runs of one side alone; none where no logs of a side
    were read."""
    sides = [_of_side(store, side) for side in (first, second)]
    if None in sides:
        return []
    before, after = (side or {} for side in sides)
    return [
        Difference("system logs", rule, before.get(rule, "no line"), after.get(rule, "no line"))
        for rule in sorted(before.keys() ^ after.keys())
    ]


def _of_side(store: Store, side: Side) -> dict[str, str] | None:
    """Return what each rule found in the logs of the runs of a side, in words; None if no logs were
    read."""
    rows = {row for case in side.cases for row in case.runs}
    read = runs_of_rows(store, rows)
    lines: dict[str, Counter[str]] = defaultdict(Counter)
    for each in _findings(store, read):
        lines[each.rule][each.node] += each.lines
    told = {
        rule: f"{count(nodes.total(), 'line')} on {fold(nodes)}" for rule, nodes in lines.items()
    }
    return told if read else None


def unchanged(store: Store, histories: list[History]) -> list[History]:
    return histories


def slow(store: Store, machine: str, runs: Sequence[RunOutcome]) -> SlowFacts | None:
    """Return the rules that go with slow runs of a machine: each is a fact of the nodes of these
    runs, whose logs have lines that match it or have none. None if no logs were read."""
    read = runs_of_rows(store, {run.row for run in runs})
    if not read:
        return None
    nodes = {node for run in read for node in unfold_or_empty(run.nodes)}
    findings = _findings(store, read)
    matched = {(each.node, each.rule) for each in findings}
    rules = sorted({each.rule for each in findings})
    facts = {
        node: {f"log.{rule}": "found" if (node, rule) in matched else "none" for rule in rules}
        for node in sorted(nodes)
    }
    return slow_facts(runs, of_nodes(facts))


def told_of_nodes(store: Store, machine: str, runs: Sequence[RunOutcome]) -> dict[str, str]:
    """Return for each node on which rules found something, in the windows of runs of a machine,
    what it was."""
    found = _findings(store, runs_of_rows(store, {run.row for run in runs}))
    return {node: f"system logs: {words}" for node, words in _by_node(found).items()}


def _by_node(findings: Iterable[Finding]) -> dict[str, str]:
    """Return in words what rules found on each node, the node with most lines first."""
    lines: dict[str, Counter[str]] = defaultdict(Counter)
    having: dict[str, set[str]] = defaultdict(set)
    for each in findings:
        lines[each.node][each.rule] += each.lines
        having[each.node].update(each.runs)
    told = {}
    for node, rules in sorted(lines.items(), key=lambda item: (-item[1].total(), item[0])):
        words = [f"{rule} ({count(number, 'line')})" for rule, number in rules.most_common()]
        ran = f"while {count(len(having[node]), 'run')} ran there"
        told[node] = f"{listed(words, MAX_RULES)} {ran}"
    return told


def on_machine(state: ServerState, view: View) -> dict[str, dict[str, str]]:
    """Return what the page of a machine shows of system logs: what its nodes logged lately."""
    store = state.store()
    since = (time.time_ns() - LATELY_NS) // SECOND_NS
    return {"logged": _by_node(_findings(store, runs_read(store, view.name, since)))}
