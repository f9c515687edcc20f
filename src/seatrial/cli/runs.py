"""``seatrial runs``: list runs."""

from collections.abc import Sequence, Set
from typing import Any

import click

from seatrial.cli import Folders, options
from seatrial.cli.options import format_option, run_filters, text_option
from seatrial.cli.query_common import nothing, opened, print_csv, show_time, tell_damage
from seatrial.cli.tables import TextTable
from seatrial.escaping import plain_line
from seatrial.model.figures import place_of
from seatrial.results.store import queries
from seatrial.results.store.export import run_record, to_json
from seatrial.results.store.queries import excluded_runs
from seatrial.results.store.schema import Store
from seatrial.results.store.tables import (
    RUNS_ON_TERMINAL,
    Column,
    Filters,
    MetricRow,
    RunRow,
    listed_columns,
)
from seatrial.units import show_seconds, show_unit

SHOWN = 50


@click.command("runs")
@run_filters
@click.option(
    "-t", "--tag", default="", help="Only tests with this tag; if repeated, with all of them."
)
@click.option("--failed", is_flag=True, help="Neither passed nor lost and run again.")
@click.option(
    "--verdict",
    "verdicts",
    multiple=True,
    shell_complete=options.complete("verdicts"),
    help="Only this verdict; may be repeated.",
)
@text_option("--cause", "TEXT", "Only failures of this cause: a part, or a pattern.")
@click.option(
    "--limit", type=click.IntRange(min=0), help=f"Most runs; 0: all. Default: {SHOWN} in a table."
)
@format_option("table", "json", "csv")
@click.pass_obj
def command(folders: Folders, /, limit: int | None, form: str, **wanted: Any) -> int:
    """List runs, newest first: test, nodes, verdict, time."""
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
