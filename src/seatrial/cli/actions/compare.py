"""``seatrial compare``: compare two sides or more."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
import msgspec
from msgspec import Struct

from seatrial.cli import Folders
from seatrial.cli.comparison_page import as_record, ladder_page, page, spread_page
from seatrial.cli.query_common import opened, tell_damage
from seatrial.lazy import LazyModule
from seatrial.store.interchange import to_json
from seatrial.studies.changed_facts import facts_changed
from seatrial.studies.compare import compare_sides
from seatrial.studies.comparison import Comparison
from seatrial.studies.ladder import ladders
from seatrial.studies.resource_basis import Resource, per_resource
from seatrial.studies.selection import Side, gather, is_named, parse_side, trials_of
from seatrial.studies.spread_comparison import compare_spreads

if TYPE_CHECKING:
    from seatrial.studies import provenance
else:  # what sides that were found differ in
    provenance = LazyModule("seatrial.studies.provenance")

UNDECIDED = 3


def command(
    folders: Folders,
    /,
    sides: tuple[str, ...],
    metrics: tuple[str, ...],
    tests: tuple[str, ...],
    threshold: float,
    across: tuple[str, ...],
    each_node: bool,
    elapsed: bool,
    ladder: bool,
    spread: bool,
    per: Resource | None,
    form: str,
) -> int:
    if len(sides) < 2:
        raise click.UsageError("name two sides or more, such as `seatrial compare before after`")
    if ladder and spread:
        raise click.UsageError("--ladder and --spread answer two questions; give one of them")
    with opened(folders) as store:
        found = [gather(store, parse_side(side), tests, given=True) for side in sides]
        trials = trials_of(found)
        tell_damage(store, trials)
        facts = [facts_changed(store, found[0], other) for other in found[1:]]
    if per:
        found = [per_resource(side, per) for side in found]
    chosen = (lambda name: is_named(name, metrics)) if metrics else None

    def compare(first: Side, second: Side) -> Comparison:
        return compare_sides(first, second, threshold, chosen, across, each_node, elapsed)

    if spread:
        spreads = [compare_spreads(found[0], b, chosen, across, each_node) for b in found[1:]]
        return _said(form, spreads, spread_page(spreads))
    if ladder:
        built = ladders(len(found), lambda i, j: compare(found[i], found[j]))
        return _said(form, built, ladder_page(built))
    compared = [compare(found[0], other) for other in found[1:]]
    origins = [
        provenance.differences(found[0], other) + changed
        for other, changed in zip(found[1:], facts, strict=True)
    ]
    if form == "json":
        click.echo(to_json(as_record(compared, origins)), nl=False)
    else:
        click.echo(page(compared, origins))
    if any(comparison.count("worse") for comparison in compared):
        return 1
    if any(one.undecided or one.unanswered or one.doubts or not one.answered for one in compared):
        return UNDECIDED
    return UNDECIDED if any(trial.damaged for trial in trials) else 0


def _said(form: str, found: Sequence[Struct], page: str) -> int:
    """Print what was found; which side is better or steadier is no failure."""
    click.echo(to_json(msgspec.to_builtins(found)) if form == "json" else page, nl=form != "json")
    return 0
