"""``seatrial compare``: compare two sides or more."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
import msgspec
from msgspec import Struct

from seatrial.cli import Folders, complete
from seatrial.cli.comparison_page import as_record, ladder_page, page, spread_page
from seatrial.cli.options import SHARE, format_option, list_option, per_option, tests_filter
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


@click.command("compare")
@click.argument("sides", nargs=-1, metavar="A B...", shell_complete=complete.sides)
@list_option("--metric", "metrics", "PATTERN", "Only these metrics.")
@tests_filter
@click.option(
    "--threshold",
    type=SHARE,
    default="2%",
    show_default=True,
    metavar="SHARE",
    help="The least effect that matters, such as 3%.",
)
@list_option("--across", "PARAMETER", "Compare cases that differ in this.")
@click.option("--each-node", is_flag=True, help="A row for each node of tests run on each.")
@click.option("--elapsed", is_flag=True, help="Scripts' times, too, beside figures of merit.")
@click.option("--ladder", is_flag=True, help="Each side with the one before, and the product.")
@click.option("--spread", is_flag=True, help="Which side varies more, in place of the medians.")
@per_option
@format_option("table", "json")
@click.pass_obj
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
    """Compare B (and C...) with A: a row for each metric of each case, the largest change first.

    A side is a trial, with conditions behind a colon; @ stands for all trials. The time that
    scripts took is the metric `elapsed`; it is shown of cases without a figure of merit.
    Exit code 1: something is worse, beyond noise; 3: too few runs to decide, or one side has no
    right answer.

    \b
    seatrial compare before after
    seatrial compare nightly:toolchain=gcc* nightly:toolchain=clang*
    seatrial compare @machine=c5,until=2026-05-01 @machine=c5,since=2026-05-01
    seatrial compare week:launch=mpi week:launch=hybrid --across ranks
    seatrial compare v0 v1 v2 --ladder
    seatrial compare before after --spread
    seatrial compare carver hopper --per core
    """
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
