"""``seatrial suspects``: find nodes that explain failed or slow runs."""

from __future__ import annotations

from typing import Any

import click

from seatrial.cli import Folders
from seatrial.cli.options import (
    json_option,
    list_option,
    machine_filter,
    since_filter,
    test_filter,
    text_option,
    together,
)
from seatrial.cli.query_common import opened, print_page, tell_damage
from seatrial.errors import UsageError
from seatrial.hooks import SuspectSource, load, provided
from seatrial.results.store import queries
from seatrial.results.store.tables import Filters
from seatrial.results.suspects import explanations
from seatrial.show.suspects import suspects_page


def _sources() -> list[SuspectSource]:
    return [*provided("seatrial_suspect_sources")]


source_options = together(
    *(
        text_option(f"--{source.option.name}", source.metavar, source.option.help)
        for source in _sources()
    )
)


@click.command("suspects")
@list_option(
    "--trial", "trials", "TAG", "Only of this trial; may be repeated; default: all but rehearsals."
)
@since_filter
@test_filter
@machine_filter
@source_options
@json_option
@click.pass_obj
def command(folders: Folders, /, trials: tuple[str, ...], as_json: bool, **wanted: Any) -> int:
    """Name the nodes, and groups of nodes, that explain failed or slow runs better than chance.

    A run counts as bad if it failed, was at its walltime, or was far slower than the others of its
    case. p is the chance of as many bad runs for a healthy node, times the number of nodes and
    groups that were compared.
    """
    asked = {source: wanted.pop(source.option.name) for source in _sources()}
    with opened(folders) as store:
        filters = Filters(**wanted)
        named = [queries.trial(store, tag) for tag in trials]
        tell_damage(store, named if trials else filters)
        found = explanations(store, named, filters)
        if not found and not any(asked.values()):
            raise UsageError(
                "no run of these trials has ended; see `seatrial runs` and `seatrial trials`"
            )
        by_runs = {name: one.accused for name, one in found.items()}
        beside = [
            load(source.accuse)(store, filters.machine, value, by_runs)
            for source, value in asked.items()
            if value
        ]
    print_page(suspects_page(found, beside), "json" if as_json else "table")
    return 0
