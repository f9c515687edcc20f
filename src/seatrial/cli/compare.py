"""``seatrial compare``: compare two sides or more."""

from collections.abc import Iterator, Sequence
from typing import Any

import click
import msgspec

from seatrial.cli import Folders, options
from seatrial.cli.options import (
    SHARE,
    format_option,
    list_option,
    per_option,
    tests_filter,
    text_option,
)
from seatrial.cli.query_common import opened, tell_damage
from seatrial.cli.tables import TextTable
from seatrial.escaping import plain_line
from seatrial.judge.promises import COLUMN, NO_SHARE, share_cell, told
from seatrial.judge.statistics.significance import remedy
from seatrial.results import provenance
from seatrial.results.compare import (
    Comparison,
    ComparisonRow,
    Difference,
    Mean,
    Sample,
    compare_sides,
)
from seatrial.results.fact_sources import node_differences
from seatrial.results.ratios import per_resource
from seatrial.results.scaling import Ladder, LadderStep, ladders
from seatrial.results.selection import Side, gather, is_named, parse_side, trials_of, words_of
from seatrial.results.spread_comparison import SpreadComparison, SpreadRow, compare_spreads
from seatrial.results.store.export import to_json
from seatrial.show.text import folded
from seatrial.units import count, show_signed, show_unit

UNDECIDED = 3


@click.command("compare")
@click.argument("sides", nargs=-1, metavar="A B...", shell_complete=options.complete("sides"))
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
@text_option("--best-of", "NAME[,NAME]", "Each side by its best over these, such as nodes,tasks.")
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
    best_of: str,
    each_node: bool,
    elapsed: bool,
    ladder: bool,
    spread: bool,
    per: str | None,
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
    seatrial compare daint titan --best-of nodes,tasks
    """
    _require_sides(sides, ladder, spread, best_of)
    with opened(folders) as store:
        gathered = [gather(store, parse_side(side), tests, given=True) for side in sides]
        trials = trials_of(gathered)
        tell_damage(store, trials)
        facts = [node_differences(store, gathered[0], other) for other in gathered[1:]]
    if per:
        gathered = [per_resource(side, per) for side in gathered]
    base, *others = gathered
    chosen = (lambda name: is_named(name, metrics)) if metrics else None

    def compare(first: Side, second: Side) -> Comparison:
        more = (threshold, chosen, across, each_node, elapsed, words_of(best_of))
        return compare_sides(first, second, *more)

    if spread:  # which side is steadier, or better, is no failure
        spreads = [compare_spreads(base, other, chosen, across, each_node) for other in others]
        return _print(form, msgspec.to_builtins(spreads), spread_page(spreads))
    if ladder:
        built = ladders(len(gathered), lambda i, j: compare(gathered[i], gathered[j]))
        return _print(form, msgspec.to_builtins(built), ladder_page(built))
    compared = [compare(base, other) for other in others]
    origins = [
        provenance.differences(base, other) + changed
        for other, changed in zip(others, facts, strict=True)
    ]
    _print(form, as_record(compared, origins), page(compared, origins))
    return _exit_code(compared, any(trial.damaged for trial in trials))


def _require_sides(sides: tuple[str, ...], ladder: bool, spread: bool, best_of: str) -> None:
    """Raise UsageError for sides or options that are no question."""
    if len(sides) < 2:
        raise click.UsageError("name two sides or more, such as `seatrial compare before after`")
    if ladder and spread:
        raise click.UsageError("--ladder and --spread answer two questions; give one of them")
    if spread and best_of:
        raise click.UsageError("--best-of compares medians, and --spread does not; leave one out")


def _print(form: str, record: Any, page: str) -> int:
    """Print an answer as JSON or as text; return 0."""
    click.echo(to_json(record) if form == "json" else page, nl=form != "json")
    return 0


def _exit_code(compared: Sequence[Comparison], damaged: bool) -> int:
    if any(comparison.count("worse") for comparison in compared):
        return 1
    undecided = any(
        one.undecided or one.unanswered or one.doubts or not one.answered for one in compared
    )
    return UNDECIDED if undecided or damaged else 0


# ---- comparison page -----------------------------------------------------------------------------
#
# The output of ``seatrial compare``: text, or JSON.


LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
MAX_REASONS = 10


def page(compared: Sequence[Comparison], origins: Sequence[Sequence[Difference]]) -> str:
    """Return all comparisons with the first side as text, one below the other."""
    lines = [f"A: {plain_line(compared[0].first)}"]
    for i, one in enumerate(compared, start=1):
        lines.append(f"{_letter(i)}: {plain_line(one.second)}")
    parts = ["\n".join(lines)]
    for i, (one, origin) in enumerate(zip(compared, origins, strict=True), start=1):
        parts += [part for part in _parts(one, origin, _letter(i)) if part]
    for undecided in _undecided(compared):
        parts.append(folded(f"{undecided} (exit code 3, where nothing is worse)"))
    return "\n\n".join(parts)


def _undecided(compared: Sequence[Comparison]) -> Iterator[str]:
    """Yield what was left undecided: sides that may not be compared, rows without a right answer,
    and rows that could not have shown a change that matters, with the remedy."""
    for i, one in enumerate(compared, start=1):
        if one.doubts:
            doubts = "; ".join(one.doubts).replace("the second side", _letter(i))
            yield f"undecided: {doubts}"
    if unanswered := sum(len(one.unanswered) for one in compared):
        yield f"no right answer on one side: {count(unanswered, 'row')}"
    if rows := [row for one in compared for row in one.undecided]:
        least = f"a change of {100 * compared[0].least:g} %"
        more_runs = remedy(max(row.needed for row in rows))
        yield (
            f"undecided: {count(len(rows), 'row')} could not show {least}; {more_runs}, or say "
            "with --threshold what matters"
        )


def _letter(number: int) -> str:
    return LETTERS[number] if number < len(LETTERS) else f"side {number + 1}"


def _parts(one: Comparison, origin: Sequence[Difference], letter: str) -> list[str]:
    title = f"{letter} compared with A"
    if one.across:
        title += f", across {', '.join(map(plain_line, one.across))}"
    return [
        click.style(title, bold=True),
        "\n".join(folded(plain_line(f"note: {notice}")) for notice in one.notices),
        _origin(origin, letter),
        _rows(one.rows, letter),
        _reasons(one.rows, letter),
        _summary(one, letter),
    ]


def _origin(differences: Sequence[Difference], letter: str) -> str:
    rows = ((one.subject, one.what, one.first, one.second) for one in differences)
    return str(TextTable(f"they differ in~ | what~ | A~ | {letter}~", rows))


def _rows(rows: Sequence[ComparisonRow], letter: str) -> str:
    figures = f"A> | {letter}> | unit~ | {COLUMN}>~"
    table = TextTable(f"verdict~ | case~ | metric~ | {figures} | better by> | 95 %> | n")
    for row in rows:
        first, second, low, high = row.first, row.second, row.better_from, row.better_to
        unit = show_unit(row.unit, "{}")
        by = "" if row.better_by is None else f"{_percent(row.better_by)} %"
        interval = "" if low is None or high is None else f"{_percent(low)}..{_percent(high)}"
        excluded = ",".join(str(sum(sample.excluded.values())) for sample in (first, second))
        n = f"{first.n},{second.n}" + ("" if excluded == "0,0" else f" ({excluded})")
        medians = (first.median, second.median)
        shares = _shares(first, second)
        table.add(_word(row), row.case, row.metric, *medians, unit, shares, by, interval, n)
    samples = [sample for row in rows for sample in (row.first, row.second)]
    words = map(plain_line, told(sample.promised for sample in samples))
    return "\n".join([str(table), *map(folded, words)])


def _shares(first: Sample, second: Sample) -> str:
    """Return what share of what was promised each side is; "" where nothing was."""
    shares = [share_cell(sample.promised) for sample in (first, second)]
    if not (first.promised or second.promised) or set(shares) == {NO_SHARE}:
        return shares[0]
    return ", ".join(share or "-" for share in shares)


def _word(row: ComparisonRow) -> str:
    """Return the verdict, with the number of runs where these are few."""
    decided = row.verdict in ("better", "worse")
    return f"{row.verdict} ({row.why})" if decided and row.why else row.verdict


def _percent(value: float) -> str:
    """Return a difference in per cent with its sign and as many digits as a person reads."""
    return show_signed(value, 0 if abs(value) >= 100 else 1)


def _reasons(rows: Sequence[ComparisonRow], letter: str) -> str:
    """Return why rows are unclear, not compared or missing, and how the sides differ otherwise;
    each reason once."""
    reasons: dict[str, list[str]] = {}
    for row in rows:
        own = row.why if _word(row) == row.verdict else ""
        where = f"{row.metric}: {row.range_words}" if row.best_at else ""
        for reason in (own, where, *(f"differs in {what}" for what in row.differs)):
            if reason:
                words = reason.replace("the first side", "A").replace("the second side", letter)
                reasons.setdefault(words, []).append(row.case)
    lines = [
        folded(plain_line(f"{_cases(cases)}: {reason}"))
        for reason, cases in list(reasons.items())[:MAX_REASONS]
    ]
    if len(reasons) > MAX_REASONS:
        lines.append(f"{len(reasons) - MAX_REASONS} more reasons are in --format json")
    return "\n".join(lines)


def _cases(cases: Sequence[str]) -> str:
    names = list(dict.fromkeys(cases))
    return names[0] if len(names) == 1 else f"{names[0]} and {count(len(names) - 1, 'other case')}"


def _summary(one: Comparison, letter: str) -> str:
    tally = {
        verdict: one.count(verdict)
        for verdict in ("worse", "better", "given", "same", "unclear", "not compared", "missing")
    }
    counts = ", ".join(f"{number} {verdict}" for verdict, number in tally.items() if number)
    lines = [f"{counts}; at least {100 * one.least:g} % matters"]
    if any(row.better_by is not None for row in one.rows):
        words = f"better by: per cent of A's median by which {letter}'s is better; "
        lines.append(folded(f"{words}positive is better, also where lower is better"))
    if one.without_elapsed:
        cases = count(one.without_elapsed, "case")
        lines.append(f"elapsed time of {cases} with a figure of merit: shown with --elapsed")
    if any(row.first.excluded or row.second.excluded for row in one.rows):
        lines.append("n: runs of A and of the other; in brackets those that are excluded")
    lines += [folded(plain_line(cure.words("A", letter))) for cure in one.cures[:MAX_REASONS]]
    lines += [folded(plain_line(_mean(mean, letter))) for mean in one.means]
    return "\n".join(lines)


def _mean(mean: Mean, letter: str) -> str:
    without = f"; {count(mean.without, 'row')} without a ratio" if mean.without else ""
    return (
        f"{mean.metric}: {letter} is {mean.mean:.3f} times as good, the geometric mean of "
        f"{mean.ratios} ratios{_unclear(mean)}{without}"
    )


def _unclear(mean: Mean) -> str:
    """Return how many rows of a mean are unclear, and what that means for it."""
    if not mean.unclear:
        return ""
    some = "all" if mean.unclear == mean.ratios else str(mean.unclear)
    caution = ": no evidence of a difference" if 2 * mean.unclear > mean.ratios else ""
    return f", {some} of them unclear{caution}"


def as_record(
    compared: Sequence[Comparison], origins: Sequence[Sequence[Difference]]
) -> dict[str, Any]:
    """Return the first side, and a comparison for each other side, for JSON."""
    return {
        "first": compared[0].first,
        "least": compared[0].least,
        "comparisons": [
            {
                "second": one.second,
                "across": one.across,
                "notices": one.notices,
                "differences": msgspec.to_builtins(origin),
                "rows": msgspec.to_builtins(one.rows),
                "undecided": len(one.undecided),
                "unanswered": len(one.unanswered),
                "doubts": one.doubts,
                "cures": msgspec.to_builtins(one.cures),
                "geometric_means": msgspec.to_builtins(one.means),
            }
            for one, origin in zip(compared, origins, strict=True)
        ],
    }


# ---- each side with the one before ---------------------------------------------------------------


def ladder_page(built: Sequence[Ladder]) -> str:
    """Return the ladders, one below the other, with a row for each side."""
    legend = (
        "times as good: above 1 is better, also where lower is better; the last row is the product"
    )
    return "\n\n".join(
        [*map(_ladder, built), folded(f"{legend} of the steps, with its own interval")]
    )


def _ladder(one: Ladder) -> str:
    unit = show_unit(one.unit, " in {}")
    title = plain_line(f"{one.case}: {one.metric}{unit} ({one.better or 'unknown'} is better)")
    table = TextTable("side~ | median> | runs> | times as good> | 95 %> |  | why~?-1")
    table.add(one.steps[0].first, one.medians[0], one.n[0], "", "", "", "")
    for step, median, n in zip(one.steps, one.medians[1:], one.n[1:], strict=True):
        table.add(step.second, median, n, *_cells(step))
    table.add("product", "", "", *_cells(one.product))
    return f"{click.style(title, bold=True)}\n\n{table}"


def _cells(step: LadderStep) -> tuple[str, str, str, str]:
    times = "" if step.times is None else f"x{step.times:.3g}"
    known = step.low is not None and step.high is not None
    interval = f"{step.low:.4g}..{step.high:.4g}" if known else ""
    return times, interval, step.verdict, step.reason


# ---- which side varies more ----------------------------------------------------------------------

_SPREADS = ("less steady", "steadier", "unclear", "not compared")


def spread_page(compared: Sequence[SpreadComparison]) -> str:
    """Return all comparisons with the first side as text, one below the other."""
    legend = (
        "A and B: robust deviations in per cent of the medians; ratio: B over A, with its 95 % "
    )
    legend += "bootstrap interval; the verdict is by the test of Brown and Forsythe"
    return "\n\n".join([*map(_spread, compared), folded(legend)])


def _spread(one: SpreadComparison) -> str:
    across = f", across {', '.join(one.across)}" if one.across else ""
    title = plain_line(f"spread of B = {one.second} compared with A = {one.first}{across}")
    table = TextTable("verdict~ | case~ | metric~ | A> | B> | ratio> | 95 %> | p>?1 | n>")
    for row in one.rows:
        table.add(*_spread_cells(row))
    tally = ((verdict, sum(row.verdict == verdict for row in one.rows)) for verdict in _SPREADS)
    counts = ", ".join(f"{n} {verdict}" for verdict, n in tally if n)
    reasons = dict.fromkeys(
        f"{row.case} {row.metric}: {row.reason}" for row in one.rows if row.reason
    )
    lines = [folded(plain_line(reason)) for reason in list(reasons)[:10]]
    return "\n".join([click.style(title, bold=True), "", str(table), "", *lines, counts])


def _spread_cells(row: SpreadRow) -> tuple[str, ...]:
    def share(value: float | None) -> str:
        return "" if value is None else f"{100 * value:.2g} %"

    known = row.low is not None and row.high is not None
    interval = f"{row.low:.2g}..{row.high:.2g}" if known else ""
    ratio = "" if row.ratio is None else f"{row.ratio:.2g}"
    p = "" if row.p is None else f"{row.p:.2g}"
    n = f"{row.n[0]},{row.n[1]}"
    sides = (share(row.first), share(row.second))
    return (row.verdict, row.case, row.metric, *sides, ratio, interval, p, n)
