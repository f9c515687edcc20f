"""Lists of runs and of trials: the acts of ``seatrial runs`` and ``seatrial trials``."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any

import click

from seatrial.cli import Folders
from seatrial.cli.commands.show import SHOWN
from seatrial.cli.query_common import nothing, opened, print_csv, show_time, tell_damage
from seatrial.cli.tables import TextTable
from seatrial.escaping import plain_line
from seatrial.model.figures import place_of
from seatrial.results.store import queries
from seatrial.results.store.export import record, run_record, to_json
from seatrial.results.store.queries import excluded_runs
from seatrial.results.store.schema import Store
from seatrial.results.store.tables import (
    RUNS_ON_TERMINAL,
    Column,
    Filters,
    MetricRow,
    RunRow,
    TrialRow,
    listed_columns,
)
from seatrial.units import count, show_seconds, show_unit


def runs(folders: Folders, /, limit: int | None, form: str, **wanted: Any) -> int:
    """Do ``seatrial runs``; return the exit code."""
    maximum = (SHOWN if form == "table" else 0) if limit is None else limit
    filters = Filters(limit=maximum, **wanted)
    with opened(folders) as store:
        tell_damage(store, filters)
        rows = queries.runs(store, filters)
        if form == "table":
            _print_table(folders, store, filters, rows)
            return 0
        figures = queries.figures(store, [run.row for run in rows])
        excluded = excluded_runs(store, [run.row for run in rows])
    print_as = _print_json if form == "json" else _print_csv
    print_as(rows, figures, excluded)
    return 0


def _print_table(folders: Folders, store: Store, filters: Filters, found: list[RunRow]) -> None:
    if not found:
        any_trial = bool(queries.trials(store))
        click.echo("No such runs; see `seatrial trials`" if any_trial else nothing(folders))
        return
    short = queries.short_ids(store, [run.run_id for run in found])
    several = len({run.trial for run in found}) > 1
    columns = listed_columns(RUNS_ON_TERMINAL)
    rows = TextTable(" | ".join(map(_form, columns)))
    excluded = excluded_runs(store, [run.row for run in found])
    for run in found:
        instead = {"run_id": short[run.run_id]}
        if run.row in excluded:
            instead["verdict"] = f"{run.verdict}, excluded"
        if not several:
            instead["trial"] = ""
        rows.add(*(instead.get(column.name, _cell(run, column)) for column in columns))
    click.echo(rows)
    _print_what_is_left(found, several, queries.count_runs(store, filters) - len(found))


def _print_what_is_left(rows: list[RunRow], several: bool, more: int) -> None:
    if not several:
        rehearsal = ", a rehearsal" if rows[0].rehearsed else ""
        which = "the latest" if more else "all"
        click.echo(f"{which} of trial {plain_line(rows[0].trial)}{rehearsal}")
    if more:
        click.echo(f"{more} older runs are not shown; --limit 0 shows all")


def _form(column: Column) -> str:
    """Return a column as ``TextTable`` describes it."""
    right = ">" if column.kind in ("number", "seconds") else ""
    return f"{column.title.lower()}{right}{'~' if column.fold else ''}"


def _cell(run: RunRow, column: Column) -> object:
    value = getattr(run, column.name)
    if column.kind == "time":
        return show_time(value)
    if column.kind == "seconds":
        return None if value is None else show_seconds(value)
    return value


def _print_json(
    rows: list[RunRow], figures: dict[int, list[MetricRow]], excluded: Set[int]
) -> None:
    records = []
    for run in rows:
        metrics = {m.name: {"value": m.value, "unit": m.unit} for m in figures.get(run.row, ())}
        left_out = run.row in excluded
        records.append({**run_record(run), "excluded": left_out, "metrics": metrics})
    click.echo(to_json(records), nl=False)


def _print_csv(
    found: list[RunRow], figures: dict[int, list[MetricRow]], excluded: Set[int]
) -> None:
    """Print a line for each run; after its fields, a column for each metric and unit."""
    fields = [*(name for name in RunRow.__struct_fields__ if name != "row"), "excluded"]
    names = {(m.name, m.unit) for row in figures.values() for m in row}
    metrics = sorted(names, key=lambda each: (place_of(each[0]), each[1]))
    rows: list[Sequence[object]] = []
    rows.append([*fields, *(name + show_unit(unit, " [{}]") for name, unit in metrics)])
    for run in found:
        values = {**run_record(run), "excluded": run.row in excluded}
        measured = {(m.name, m.unit): m.value for m in figures.get(run.row, ())}
        rows.append([*map(values.get, fields), *map(measured.get, metrics)])
    print_csv(rows)


USUAL_LIMIT = 50


def trials(folders: Folders, limit: int | None, rehearsed: bool, form: str) -> int:
    """Do ``seatrial trials``; return the exit code."""
    with opened(folders) as store:
        known = queries.trials(store)
        measured = [row for row in known if not row.rehearsed]
        found = known if rehearsed else measured or known
        if limit is None:
            limit = USUAL_LIMIT if form == "table" else 0
        shown = found[:limit] if limit else found
        tell_damage(store, shown)
    if form == "json":
        click.echo(to_json([record(row) for row in shown]), nl=False)
        return 0
    if not found:
        click.echo(nothing(folders))
        return 0
    click.echo(_table(shown))
    _tell_hidden(len(known), len(found), len(shown))
    return 0


def _tell_hidden(known: int, listed: int, shown: int) -> None:
    """Tell which trials are not shown: rehearsals among those that are known, and older ones."""
    if listed < known:
        click.echo(f"{count(known - listed, 'rehearsal')} not shown; --rehearsed shows them, too")
    if shown < listed:
        click.echo(f"{listed - shown} older trials are not shown; --limit 0 shows all")


def _table(found: list[TrialRow]) -> TextTable:
    shown = TextTable(
        "trial~ | machine~?6 | state | started?1 | elapsed>?3 | runs>?2 | pass> | fail> | known>?4"
        " | going>?4 | wait>?5 | note"
    )
    for row in found:
        elapsed = None if row.elapsed is None else show_seconds(row.elapsed)
        times = (show_time(row.started), elapsed)
        numbers = (
            row.runs,
            row.passed,
            row.failed,
            row.known or None,
            row.running or None,
            row.waiting or None,
        )
        note = "rehearsed" if row.rehearsed else None
        shown.add(row.tag, row.machine, row.state, *times, *numbers, note)
    return shown
