"""``seatrial records``: the best figure ever of each machine."""

from __future__ import annotations

from typing import Any

import click

from seatrial.cli import Folders
from seatrial.cli.options import format_option, run_filters, text_option
from seatrial.cli.query_common import opened, print_page, tell_damage
from seatrial.results.metric_records import metric_records
from seatrial.results.store import queries
from seatrial.results.store.tables import Filters
from seatrial.show.records import records_page

DAMAGED = 3  # exit code: runs may be missing


@click.command("records")
@click.argument("metric")
@text_option("--case", "case", "PATTERN", "Cases: a part of the name, or the id.")
@run_filters
@format_option("table", "json", "csv")
@click.pass_obj
def command(folders: Folders, /, metric: str, case: str, form: str, **wanted: Any) -> int:
    """Show the best figure of METRIC that each machine ever had, by test.

    Each record has its run, its time, of how many figures it is the best, and the median of its
    case. Figures that others gave stand among them, marked, with their source.

    \b
    seatrial records write
    seatrial records create -k mdtest --format csv
    """
    filters = Filters(**wanted)
    with opened(folders) as store:
        damaged = queries.damaged(store, filters)
        tell_damage(store, damaged)
        found = metric_records(store, metric, filters, case)
        missing = bool(damaged or store.left_out)
    print_page(records_page(found, metric), form)
    return DAMAGED if missing else 0
