"""``seatrial compare``: compare two sides or more."""

from __future__ import annotations

from collections.abc import Sequence

import click

from seatrial.cli import Folders
from seatrial.cli.query_common import opened, print_page, tell_damage
from seatrial.results import provenance
from seatrial.results.compare import Comparison, compare_sides
from seatrial.results.provenance import node_differences
from seatrial.results.ratios import per_resource
from seatrial.results.scaling import ladders
from seatrial.results.selection import (
    Difference,
    Side,
    gather,
    is_named,
    parse_side,
    trials_of,
    words_of,
)
from seatrial.results.spread_comparison import compare_spreads
from seatrial.show.compare import compare_page, ladder_page, spread_page

UNDECIDED = 3


def compare(
    folders: Folders,
    /,
    sides: tuple[str, ...],
    metrics: tuple[str, ...],
    tests: tuple[str, ...],
    threshold: float,
    across: tuple[str, ...],
    best_of: str,
    each_node: bool,
    elapsed: bool,
    ladder: bool,
    spread: bool,
    per: str | None,
    form: str,
) -> int:
    """Do ``seatrial compare``; return the exit code."""
    _require_sides(sides, ladder, spread, best_of)
    gathered, facts = _gathered(folders, sides, tests, per)
    base, *others = gathered
    chosen = (lambda name: is_named(name, metrics)) if metrics else None

    def compare(first: Side, second: Side) -> Comparison:
        more = (threshold, chosen, across, each_node, elapsed, words_of(best_of))
        return compare_sides(first, second, *more)

    if spread:  # which side is steadier, or better, is no failure
        spreads = [compare_spreads(base, other, chosen, across, each_node) for other in others]
        print_page(spread_page(spreads), form)
        return 0
    if ladder:
        built = ladders(len(gathered), lambda i, j: compare(gathered[i], gathered[j]))
        print_page(ladder_page(built), form)
        return 0
    compared = [compare(base, other) for other in others]
    origins = [
        provenance.differences(base, other) + changed
        for other, changed in zip(others, facts, strict=True)
    ]
    print_page(compare_page(compared, origins), form)
    return _exit_code(compared, any(trial.damaged for trial in trials_of(gathered)))


def _require_sides(sides: tuple[str, ...], ladder: bool, spread: bool, best_of: str) -> None:
    """Raise UsageError for sides or options that are no question."""
    if len(sides) < 2:
        raise click.UsageError("name two sides or more, such as `seatrial compare before after`")
    if ladder and spread:
        raise click.UsageError("--ladder and --spread answer two questions; give one of them")
    if spread and best_of:
        raise click.UsageError("--best-of compares medians, and --spread does not; leave one out")


def _gathered(
    folders: Folders, texts: tuple[str, ...], tests: tuple[str, ...], per: str | None
) -> tuple[list[Side], list[list[Difference]]]:
    """Return the sides, and the facts of nodes in which each differs from the first."""
    with opened(folders) as store:
        sides = [gather(store, parse_side(text), tests, given=True) for text in texts]
        tell_damage(store, trials_of(sides))
        facts = [node_differences(store, sides[0], other) for other in sides[1:]]
    return [per_resource(side, per) for side in sides] if per else sides, facts


def _exit_code(compared: Sequence[Comparison], damaged: bool) -> int:
    if any(comparison.count("worse") for comparison in compared):
        return 1
    undecided = any(
        one.undecided or one.unanswered or one.doubts or not one.answered for one in compared
    )
    return UNDECIDED if undecided or damaged else 0
