"""``seatrial history``: how a metric went over time, and where it changed."""

from __future__ import annotations

import string
from typing import TYPE_CHECKING, Any

import click

from seatrial.cli import Folders

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial.studies.history import History, ReportedChange
    from seatrial.studies.note_file import Note

MAX_PLOTS = 4  # series with a plot; of more there is a table, and plots of the changed ones
MAX_ROWS = 100
MAX_NOTES = 26


@click.command("history")
@click.argument("metric")
@click.option("-k", "--test", default="", metavar="PATTERN", help="Tests: a part, or e.g. io_*.")
@click.option(
    "--case", "case", default="", metavar="PATTERN", help="Cases: a part of the name, or the id."
)
@click.option("-m", "--machine", default="", metavar="PATTERN", help="Only on this machine.")
@click.option("--toolchain", default="", metavar="PATTERN", help="Only with this toolchain.")
@click.option("--since", metavar="TIME", help="Created since: 2h, 3d, 2026-11-20, ...T14:03.")
@click.option("--trial", default="", metavar="TAG", help="Only of this trial.")
@click.option("--rehearsed", is_flag=True, help="Those of rehearsals, too.")
@click.option("--check", is_flag=True, help="Exit code 1 if a change for the worse is confirmed.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json", "csv"]),
    default="table",
    show_default=True,
)
@click.pass_obj
def command(
    folders: Folders,
    /,
    metric: str,
    case: str,
    since: str | None,
    check: bool,
    form: str,
    **wanted: Any,
) -> int:
    """Show METRIC over time, a series for each case, with the changes of its level.

    METRIC is a figure of merit, or `elapsed`: the time of the script. A change is *suspect* or
    *confirmed*; only confirmed ones for the worse make --check end with 1.
    """
    from seatrial.cli.query_common import moment, opened
    from seatrial.store.rows import Filters
    from seatrial.studies import note_file
    from seatrial.studies.history import histories

    notes = note_file.read(folders.trials / note_file.FILE)
    if notes.damaged:
        click.echo(f"seatrial: {notes.damaged} lines of {note_file.FILE} are no notes", err=True)
    filters = Filters(since=moment(since) if since else 0, **wanted)
    with opened(folders) as store:
        found = histories(store, metric, filters, case, notes.notes)
    {"table": _print_table, "json": _print_json, "csv": _print_csv}[form](found)
    return 1 if check and any(history.alarms for history in found) else 0


# ---- tables and plots ---------------------------------------------------------------------


def _print_table(found: list[History]) -> None:
    from seatrial.statistics.changes import MIN_POINTS
    from seatrial.units import count

    drawn = found if len(found) <= MAX_PLOTS else _changed(found)[:MAX_PLOTS]
    if len(found) > MAX_PLOTS:
        _print_overview(found)
    for number, history in enumerate(drawn):
        if number or len(found) > MAX_PLOTS:
            click.echo()
        _print_history(history)
    changed = len(_changed(found))
    if len(found) > MAX_PLOTS and changed > MAX_PLOTS:
        click.echo(f"\n{changed - MAX_PLOTS} more series changed; --case shows one")
    alarms = sum(len(history.alarms) for history in found)
    total = sum(told.confirmed for history in found for told in history.told)
    said = f"{count(total, 'confirmed change')}, {alarms} for the worse" if total else "no change"
    few = sum(history.analysis.few for history in found)
    told = [f"too few figures to tell in {few} of them, {MIN_POINTS} or more are needed"]
    if few < len(found):
        told.insert(0, said)
    click.echo(f"\n{len(found)} series: {'; '.join(told if few else [said])}")


def _changed(found: list[History]) -> list[History]:
    """Those with a confirmed change, the most changed for the worse first."""
    changed = [history for history in found if any(told.confirmed for told in history.told)]
    return sorted(changed, key=_badness, reverse=True)


def _badness(history: History) -> float:
    each = [(abs(t.percent or 0), t.worse) for t in history.told if t.confirmed]
    return max(share if worse else -1 / (1 + share) for share, worse in each)


def _print_overview(found: list[History]) -> None:
    from statistics import median

    from seatrial.cli.query_common import show_figure
    from seatrial.cli.tables import TableColumn, table

    several = len({history.series.machine for history in found}) > 1
    columns = [
        TableColumn("case", folds=True),
        TableColumn("machine"),
        *(TableColumn("n", right=True), TableColumn("left out", right=True)),
        *(TableColumn("median", right=True), TableColumn("noise", right=True)),
        TableColumn("changes", folds=True),
    ]
    changed = _changed(found)
    shown = {id(history) for history in changed}
    ordered = changed + [history for history in found if id(history) not in shown]
    rows = []
    for history in ordered[:MAX_ROWS]:
        series = history.series
        middle = median(series.values) if series.values else None
        noise = f"{100 * history.analysis.noise / abs(middle):.2g} %" if middle else ""
        rows.append(
            [
                series.case_name,
                series.machine if several else "",
                str(len(series.points)),
                str(sum(series.excluded.values()) or ""),
                "" if middle is None else show_figure(middle, series.unit),
                noise if history.analysis.noise else "",
                _short(history),
            ]
        )
    click.echo(table(columns, rows))
    if len(found) > MAX_ROWS:
        click.echo(f"and {len(found) - MAX_ROWS} more without a change; --format json shows all")


def _short(history: History) -> str:
    if history.analysis.why:
        return "too few" if history.analysis.few else "none: all equal"
    confirmed = [_percent(told) for told in history.told if told.confirmed]
    suspect = sum(not told.confirmed for told in history.told)
    said = [*confirmed, *([f"{suspect} suspect"] if suspect else [])]
    return ", ".join(said) or ("hardly enough figures" if history.analysis.limit else "")


def _percent(told: ReportedChange) -> str:
    return "" if told.percent is None else f"{told.percent:+.1f} %"


def _print_history(history: History) -> None:
    from seatrial.cli.query_common import show_figure
    from seatrial.units import count
    from seatrial.verify.reading import plain_line

    series, analysis = history.series, history.analysis
    said = f"{series.metric} of {series.case_name} on {series.machine}"
    click.echo(click.style(plain_line(said), bold=True))
    unit = "" if series.unit in ("", "1") else f"{plain_line(series.unit)}, "
    noise = f", noise {show_figure(analysis.noise, '')}" if analysis.noise else ""
    click.echo(f"{unit}{series.better} is better, n {len(series.points)}{noise}")
    if series.excluded:
        reasons = ", ".join(f"{n} {plain_line(why)}" for why, n in series.excluded.items())
        click.echo(f"left out: {count(sum(series.excluded.values()), 'run')}: {reasons}")
    notes = history.notes[-MAX_NOTES:]
    if series.points:
        click.echo("\n".join(_plot(history, notes)))
    if analysis.why:
        click.echo(f"nothing can be concluded: {analysis.why}")
    elif not history.told:
        click.echo("no change")
    if history.told:
        click.echo(_changes_table(history))
    if analysis.limit:
        click.echo(analysis.limit)
    for letter, note in zip(string.ascii_lowercase, notes, strict=False):
        click.echo(f"{letter}  {_day(note.time)}  {plain_line(note.text)}")


def _plot(history: History, notes: Sequence[Note]) -> list[str]:
    from seatrial.cli.plots import TextMark, time_line

    points = [(point.time / 1e9, point.value) for point in history.series.points]
    changes = [
        TextMark(told.first / 1e9, "C" if told.confirmed else "s", bar=told.confirmed)
        for told in history.told
    ]
    letters = [
        TextMark(note.time / 1e9, letter)
        for letter, note in zip(string.ascii_lowercase, notes, strict=False)
    ]
    times = [time for time, _ in points] + [mark.at for mark in letters]
    ends = (_day(int(min(times)) * 10**9), _day(int(max(times)) * 10**9))
    return time_line(points, [changes, letters], ends if ends[0] != ends[1] else (ends[0], ""))


def _changes_table(history: History) -> str:
    from seatrial.cli.query_common import show_figure
    from seatrial.cli.tables import TableColumn, table

    columns = [
        TableColumn("change"),
        TableColumn("since"),
        *(
            TableColumn("before", right=True),
            TableColumn("after", right=True),
            TableColumn("by", right=True),
        ),
        TableColumn(""),
        TableColumn("nearest note", folds=True),
    ]
    unit = history.series.unit
    rows = [
        [
            told.change.tier,
            _day(told.first),
            show_figure(told.change.before, unit),
            show_figure(told.change.after, unit),
            _percent(told) or "no ratio",
            "worse" if told.worse else "better",
            _near(told),
        ]
        for told in history.told
    ]
    return table(columns, rows)


def _near(told: ReportedChange) -> str:
    from seatrial.units import show_seconds

    if told.near is None:
        return ""
    away = told.near.seconds
    when = "in between" if not away else show_seconds(abs(away))
    if away:
        when += " before" if away < 0 else " after"
    return f"{told.near.note.text} ({when})"


def _day(time_ns: int) -> str:
    from datetime import datetime

    return f"{datetime.fromtimestamp(time_ns // 10**9):%Y-%m-%d %H:%M}"


# ---- for programs -------------------------------------------------------------------------


def _print_json(found: list[History]) -> None:
    from seatrial.store.export import iso, to_json

    records = []
    for history in found:
        series = history.series
        records.append(
            {
                "metric": series.metric,
                "machine": series.machine,
                "case": series.case,
                "case_name": series.case_name,
                "test": series.test,
                "toolchain": series.toolchain,
                "unit": series.unit,
                "better": series.better,
                "n": len(series.points),
                "excluded": series.excluded,
                "noise": history.analysis.noise,
                "why": history.analysis.why,
                "limit": history.analysis.limit,
                "changes": [_change_record(told) for told in history.told],
                "notes": [
                    {"time": iso(n.time), "machine": n.machine, "text": n.text, "id": n.id}
                    for n in history.notes
                ],
                "points": [
                    {"time": iso(p.time), "value": p.value, "run": p.run_id, "trial": p.trial}
                    for p in series.points
                ],
            }
        )
    click.echo(to_json(records), nl=False)


def _change_record(told: ReportedChange) -> dict[str, Any]:
    from seatrial.store.export import iso

    change, near = told.change, told.near
    note = None
    if near is not None:
        note = {"text": near.note.text, "time": iso(near.note.time), "seconds": near.seconds}
    strength = change.strength if change.strength != float("inf") else None
    return {
        "tier": change.tier,
        "index": change.index,
        "since": iso(told.first),
        "last_before": iso(told.last),
        "before": change.before,
        "after": change.after,
        "percent": told.percent,
        "worse": told.worse,
        "strength": strength,
        "nearest_note": note,
    }


def _print_csv(found: list[History]) -> None:
    """A line for each figure; ``change`` is set on the first one of a new level."""
    import csv
    import io

    from seatrial.store.export import iso
    from seatrial.verify.reading import plain_line

    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    titles = ("machine", "case", "case_name", "metric", "unit", "time", "value", "run", "trial")
    writer.writerow([*titles, "change"])
    for history in found:
        series = history.series
        tiers = {told.change.index: told.change.tier for told in history.told}
        for index, point in enumerate(series.points):
            cells = [series.machine, series.case, series.case_name, series.metric, series.unit]
            cells += [iso(point.time) or "", repr(point.value), point.run_id, point.trial]
            writer.writerow([plain_line(cell) for cell in [*cells, tiers.get(index, "")]])
    click.echo(out.getvalue(), nl=False)
