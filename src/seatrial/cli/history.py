"""``seatrial history``: a metric over time, and its changes."""

from __future__ import annotations

from typing import Any

import click

from seatrial.cli import Folders
from seatrial.cli.note import diary
from seatrial.cli.options import STAGES, format_option, run_filters, text_option
from seatrial.cli.query_common import opened, tell, tell_damage
from seatrial.cli.study import HOW, print_or_draw
from seatrial.errors import UsageError
from seatrial.model.test import Stage
from seatrial.results import history as success_rate
from seatrial.results.fact_sources import with_node_changes
from seatrial.results.given import GivenEntry
from seatrial.results.history import beside_given, doubts, histories, number_given
from seatrial.results.store import queries
from seatrial.results.store.tables import Filters
from seatrial.show.history import history_page, rates_page
from seatrial.units import count

MAX_DOUBTS = 20
UNDECIDED = 3  # exit code: no change for the worse was found, and none could have been


@click.command("history")
@click.argument("metric")
@text_option("--case", "case", "PATTERN", "Cases: a part of the name, or the id.")
@click.option("--stage", type=click.Choice(STAGES), default=None, help="Only of this stage.")
@run_filters
@click.option(
    "--check",
    is_flag=True,
    help="Exit code 1: a change for the worse is confirmed; 3: none is, and one could not have "
    "been seen.",
)
@click.option("--given", is_flag=True, help="Figures that others gave, too, marked.")
@format_option("table", "json", "csv", "svg", help=HOW)
@click.pass_obj
def command(
    folders: Folders,
    /,
    metric: str,
    case: str,
    stage: Stage | None,
    check: bool,
    given: bool,
    form: str,
    **wanted: Any,
) -> int:
    """Show METRIC over time, a series for each case, with the changes of its level.

    METRIC is a figure of merit, `elapsed` (the time of the script), or `success_rate`: the share of
    the runs of a test that passed, by trial and day; `latency_by_level` and `bandwidth_by_level` of
    the probe `pingpong` have a series for each level of the network. A change is *suspect* or
    *confirmed*; only confirmed ones for the worse make --check end with 1. It ends with 3 where no
    change could have been seen: too few figures, a single trial, a latest run without a figure.
    """
    stage_of, filters = stage or "", Filters(**wanted)
    notes = diary(folders).notes
    with opened(folders) as store:
        damaged = queries.damaged(store, filters)
        tell_damage(store, damaged)
        if success_rate.is_success_rate(store, metric):
            if check:
                raise UsageError(f"--check: changes of {metric} are not judged; see `pass_rate`")
            rates = success_rate.success_rates(store, filters, case, stage_of)
            print_or_draw(rates_page(rates), form)
            return 0
        number = number_given(store, metric, filters, case)
        if number and not given:
            tell(f"{count(number, 'given figure')} of {metric}: --given shows them")
        series = histories(store, metric, filters, case, notes, stage_of, given=given)
        series = with_node_changes(store, series)
        others: list[GivenEntry] = []
        if given:
            series, others = beside_given(store, metric, series, filters, case)
        worse = any(history.alarms for history in series)
        unseen: list[str] = []
        if check and not worse:
            unseen = [
                *([] if series else ["nothing was measured; given figures are not judged"]),
                *doubts(store, metric, filters, series),
                *(f"{row.tag}: its journal is damaged" for row in damaged),
                *store.left_out,
            ]
    print_or_draw(history_page(series, metric, others=others), form)
    _tell_unseen(unseen)
    if check and worse:
        return 1
    return UNDECIDED if unseen else 0


def _tell_unseen(reasons: list[str]) -> None:
    """Tell on stderr why a change could not have been seen."""
    for reason in reasons[:MAX_DOUBTS]:
        tell(f"--check: {reason}")
    if len(reasons) > MAX_DOUBTS:
        tell(f"--check: and {len(reasons) - MAX_DOUBTS} more reasons")
