"""A tuning as text: its advice, its settings, its rehearsal."""

from typing import TYPE_CHECKING

import click

from seatrial.cli import Folders
from seatrial.cli.tables import TextTable, print_first
from seatrial.escaping import plain_line
from seatrial.show.text import folded
from seatrial.studies.advice import advice, cost_text, interval_text, untried_text
from seatrial.studies.tuned import Tuned, TunedSetting, in_order, state_text
from seatrial.units import count, listed, show_figure, show_number, show_seconds, show_share

if TYPE_CHECKING:
    from seatrial.trial.tuning import PreparedTuning
    from seatrial.trial.tuning_odds import TuningOdds

MAX_ROWS = 15


def print_advice(found: Tuned, folders: Folders) -> None:
    """Print which setting to use, how sure that is, and what it cost."""
    first, *more = advice(found)
    click.echo(f"{_title(found)}\n")
    click.echo(click.style(folded(plain_line(first)), bold=True))
    for text in more:
        click.echo(folded(plain_line(text)))
    if rows := [each for each in in_order(found) if each.state != "failed"]:
        click.echo()
        _print_settings(found, rows)
    _print_failed(found)
    click.echo("\n" + folded(f"cost: {cost_text(found)}"))
    if untried := untried_text(found):
        click.echo(folded(plain_line(f"never tried: {untried}")))
    if found.script:
        click.echo("\nfor a job script:")
        for line in found.script:
            click.echo(plain_line(f"    {line}"))
    click.echo(f"\nall settings: {folders.command('tune', '--status', found.trial)}")


def print_status(found: Tuned) -> None:
    """Print how a race stands: its blocks, and every setting."""
    click.echo(f"{_title(found)}\n")
    for number, block in enumerate(found.blocks, 1):
        lost = sum(each.block == number for each in found.settings)
        what = f"{count(len(block.settings), 'setting')}, {count(block.rounds, 'round')}"
        ended = number < len(found.blocks) or found.complete
        after = f"; {lost} dropped after it" if ended else "; under way"
        on = f" on {listed(block.nodes, 3)}" if block.nodes else ""
        click.echo(folded(plain_line(f"block {number}: {what}{on}{after}")))
    click.echo(folded(f"cost: {cost_text(found)}") + "\n")
    _print_settings(found, in_order(found), len(found.settings))


def _title(found: Tuned) -> str:
    what = found.metric or "the largest size that works"
    if found.metric:
        unit = f" ({found.unit})" if found.unit not in ("", "1") else ""
        what = f"{found.metric}{unit}, {found.better} is better"
    state = "complete" if found.complete else "not complete"
    return plain_line(f"{found.tune}: {found.test} on {found.machine}, {what}; {state}")


def _print_settings(found: Tuned, rows: list[TunedSetting], most: int = MAX_ROWS) -> None:
    table = TextTable("setting~ | n> | figure>?3 | of the best> | interval?2 | state~")
    for each in rows[:most]:
        ratio = each.to_best
        table.add(
            each.name + (" (default)" if each.is_default else ""),
            each.n,
            None if each.figure is None else show_figure(each.figure, found.unit),
            None if ratio is None else f"{ratio.ratio:.3f}",
            None if ratio is None else interval_text(ratio),
            state_text(each),
        )
    print_first(table, len(rows), most)


def _print_failed(found: Tuned) -> None:
    failed = [each for each in found.settings if each.state == "failed"]
    if failed:
        click.echo(f"\n{count(len(failed), 'setting')} failed:")
        for each in failed[:MAX_ROWS]:
            click.echo(folded(plain_line(f"  {each.name}: {each.cause}")))
        if len(failed) > MAX_ROWS:
            click.echo(f"  and {len(failed) - MAX_ROWS} more")


def print_rehearsal(odds: "TuningOdds", prepared: "PreparedTuning") -> None:
    """Print what a tuning would cost, and how likely it finds the best."""
    rules, tune = prepared.rules, prepared.tune
    click.echo(
        f"{tune.tune}: {count(len(rules.levels), 'setting')} of {tune.test}, at most "
        f"{rules.runs} of the grid's {rules.grid} runs in {count(rules.allocations, 'allocation')}"
    )
    longest = max((case.nodes * case.walltime / 3600 for case in prepared.cases), default=0.0)
    click.echo(
        folded(
            f"cost: at most {show_number(rules.runs * longest)} node-hours, if each run took its "
            f"whole walltime; an allocation takes up to {show_seconds(prepared.longest_block)}"
        )
    )
    noise = f"{show_share(odds.noise)} noise, node factors of {show_share(odds.nodes)}, drift"
    click.echo(folded(f"rehearsed with {count(odds.seeds, 'seed')}: {noise}, disturbed runs\n"))
    table = TextTable("planted effects~ | advised is best or near> | default kept> | runs>")
    for each in odds.cases:
        found = show_share(each.found) if each.found is not None else None
        table.add(each.planted, found, show_share(each.kept), show_share(each.runs / rules.grid))
    click.echo(table)
    click.echo(folded(f"near: within {show_share(rules.least)} of the best"))
