"""What system logs had while runs were under way: the command and the page ``logs``, and the parts
of the pages of runs and machines."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from markupsafe import Markup
from msgspec import Struct
from msgspec.structs import asdict

from seatrial.errors import UsageError
from seatrial.execute.trial_folder import Record
from seatrial.hooks import value_of
from seatrial.plugins.systemlogs.findings import (
    HOUR_S,
    Finding,
    Logs,
    ReadRun,
    findings_of,
    logs_of,
    runs_read,
    unread_runs,
    words_by_node,
)
from seatrial.plugins.systemlogs.reading import rules_for
from seatrial.results.store.schema import Store
from seatrial.results.store.tables import RunRow
from seatrial.results.variability import LATELY_NS
from seatrial.show.draw.maps import AmountScale, colour
from seatrial.show.draw.svg import LINE, WIDTH, cut, hover, picture, rect, words
from seatrial.show.page import Cell, Chart, Column, Page, Part, Section, Table, Text
from seatrial.show.web.nodes import View
from seatrial.show.web.server_state import ServerState
from seatrial.units import SECOND_NS, count, moment_of

MAX_ROWS = 200  # of a table
MAX_LINKS = 3  # runs of a row
MAX_FAULTS = 10
MAX_HOURS, MAX_NODES = 72, 60  # of the chart
_LEFT, _CELL_HEIGHT = 90.0, 16.0

_JUDGED_BAD = "runs that did not pass"


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
    """Return the page of what system logs had while runs were under way, as ``seatrial logs``."""
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


def on_machine(state: ServerState, view: View) -> dict[str, dict[str, str]]:
    """Return what the page of a machine shows of system logs: what its nodes logged lately."""
    store = state.store()
    since = (time.time_ns() - LATELY_NS) // SECOND_NS
    return {"logged": words_by_node(findings_of(store, runs_read(store, view.name, since)))}
