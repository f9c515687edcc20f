"""``seatrial compare``: compare two sides or more."""

from __future__ import annotations

import click

from seatrial.cli import Folders, complete
from seatrial.cli.comparison_page import as_record, page
from seatrial.cli.options import SHARE, format_option, tests_filter
from seatrial.cli.query_common import opened, tell_damage
from seatrial.store.export import to_json
from seatrial.studies.compare import compare_sides
from seatrial.studies.provenance import differences
from seatrial.studies.selection import gather, is_named, parse_side, trials_of

UNDECIDED = 3


@click.command("compare")
@click.argument("sides", nargs=-1, metavar="A B...", shell_complete=complete.sides)
@click.option("--metric", "metrics", multiple=True, metavar="PATTERN", help="Only these metrics.")
@tests_filter
@click.option(
    "--threshold",
    type=SHARE,
    default="2%",
    show_default=True,
    metavar="SHARE",
    help="The least effect that matters, such as 3%.",
)
@click.option(
    "--across", multiple=True, metavar="PARAMETER", help="Compare cases that differ in this."
)
@click.option("--each-node", is_flag=True, help="A row for each node of tests run on each.")
@click.option("--elapsed", is_flag=True, help="Scripts' times, too, beside figures of merit.")
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
    """
    if len(sides) < 2:
        raise click.UsageError("name two sides or more, such as `seatrial compare before after`")
    with opened(folders) as store:
        found = [gather(store, parse_side(side), tests, given=True) for side in sides]
        tell_damage(store, trials_of(found))
    compared = [
        compare_sides(
            found[0],
            other,
            threshold,
            metric=(lambda name: is_named(name, metrics)) if metrics else None,
            across=across,
            each_node=each_node,
            elapsed=elapsed,
        )
        for other in found[1:]
    ]
    origins = [differences(found[0], other) for other in found[1:]]
    if form == "json":
        click.echo(to_json(as_record(compared, origins)), nl=False)
    else:
        click.echo(page(compared, origins))
    if any(comparison.count("worse") for comparison in compared):
        return 1
    if any(one.undecided or one.unanswered or not one.answered for one in compared):
        return UNDECIDED
    return 0
