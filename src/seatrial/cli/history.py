"""A metric over time: the acts of ``seatrial history`` and ``seatrial records``."""

from __future__ import annotations

from typing import Any

from seatrial.cli import Folders
from seatrial.cli.note import diary
from seatrial.cli.query_common import opened, print_page, tell, tell_damage
from seatrial.cli.study import print_or_draw
from seatrial.errors import UsageError
from seatrial.model.test import Stage
from seatrial.results import history as success_rate
from seatrial.results.given import GivenEntry
from seatrial.results.history import (
    beside_given,
    doubts,
    histories,
    number_given,
    with_node_changes,
)
from seatrial.results.metric_records import metric_records
from seatrial.results.store import queries
from seatrial.results.store.tables import Filters
from seatrial.show.history import history_page, rates_page
from seatrial.show.records import records_page
from seatrial.units import count

MAX_DOUBTS = 20
UNDECIDED = 3  # exit code: no change for the worse was found, and none could have been


def history(
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
    """Do ``seatrial history``; return the exit code."""
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


DAMAGED = 3  # exit code: runs may be missing


def records(folders: Folders, /, metric: str, case: str, form: str, **wanted: Any) -> int:
    """Do ``seatrial records``; return the exit code."""
    filters = Filters(**wanted)
    with opened(folders) as store:
        damaged = queries.damaged(store, filters)
        tell_damage(store, damaged)
        found = metric_records(store, metric, filters, case)
        missing = bool(damaged or store.left_out)
    print_page(records_page(found, metric), form)
    return DAMAGED if missing else 0
