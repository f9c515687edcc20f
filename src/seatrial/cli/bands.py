"""``seatrial bands``: latency and bandwidth of pairs by level of the network and kind of core."""

from pathlib import Path
from typing import Any

import click
import msgspec

from seatrial.cli import Folders
from seatrial.cli.options import json_option
from seatrial.cli.query_common import opened, trial_or_file
from seatrial.cli.tables import TextTable
from seatrial.errors import UsageError
from seatrial.escaping import plain_line
from seatrial.execute.detect import find_machine
from seatrial.judge.bands import PairLine
from seatrial.judge.statistics.bands import OddPair
from seatrial.model.machine import Machine
from seatrial.model.machine_topology import known_topology
from seatrial.results import bands
from seatrial.results.store.export import to_json
from seatrial.show.text import folded
from seatrial.units import count, show_number

MAX_ODD = 20


@click.command("bands")
@click.argument("source", metavar="TRIAL|FILE")
@click.option("-m", "--machine", help="Machine whose topology is used; default: the trial's.")
@json_option
@click.pass_obj
def command(folders: Folders, source: str, machine: str | None, as_json: bool) -> int:
    """Show latency and bandwidth of pairs by level of the network, and by kind of core.

    Of TRIAL: all right runs of the probe `pingpong`. FILE: an output of `pingpong`. A node pair of
    several runs or ranks has the median of its figures.
    """
    site: Machine | None = None
    if Path(source).is_file():
        lines = bands.lines_of_file(Path(source))
    else:
        lines, site = _of_trial(folders, source)
    if machine is not None:
        site = find_machine(machine).machine
    if site is None:
        raise UsageError(f"{source}: levels come from a machine; name it with --machine")
    found = bands.bands_of(lines, known_topology(site))
    if as_json:
        click.echo(to_json({one.name: _record(one) for one in found}), nl=False)
        return 0
    for number, one in enumerate(found):
        if number:
            click.echo()
        _print(one)
    return 0


def _of_trial(folders: Folders, source: str) -> "tuple[list[PairLine], Machine]":
    with opened(folders) as store:
        trial = trial_or_file(store, source)
        return bands.lines_of_trial(store, trial)


def _record(one: bands.LevelFigures) -> dict[str, Any]:
    record: dict[str, Any] = msgspec.to_builtins(one)
    del record["name"], record["quantiles"]
    found: dict[str, Any] = record.pop("found")
    return record | found


def _print(one: bands.LevelFigures) -> None:
    found = one.found
    rows = TextTable(f"level | pairs> | {one.name} {one.unit}> | 95 %> | modes>")
    for band in found.bands:
        ends = _interval(band.low, band.high)
        rows.add(band.level, band.pairs, f"{band.median:.4g}", ends, band.modes)
    click.echo(rows)
    if len(found.bands) == 1 and not found.hop:
        click.echo(f"all pairs are of one level, {found.bands[0].level}: nothing to compare")
    for text in bands.step_texts(one):
        click.echo(text)
    if told := bands.hop_text(one):
        click.echo(folded(told))
    if one.expected_mean is not None:
        mean = f"{one.expected_mean:.4g} {one.unit}"
        click.echo(f"expected mean of evenly drawn pairs of nodes: {mean}")
    for odd in found.odd[:MAX_ODD]:
        click.echo(f"beyond its band: {_odd_text(odd, one.unit, one.longest > 0)}")
    if len(found.odd) > MAX_ODD:
        click.echo(f"and {count(len(found.odd) - MAX_ODD, 'pair')} more; --json has them")
    if one.cores is not None:
        click.echo()
        click.echo(_cores_table(one))


def _cores_table(one: bands.LevelFigures) -> TextTable:
    rows = TextTable(f"level | cores~ | pairs> | share> | {one.name} {one.unit}> | 95 %>")
    for band in one.core_bands:
        figures = (f"{100 * band.share:.3g} %", f"{band.median:.4g}")
        cores = one.cores_text(band)
        rows.add(band.level, cores, band.pairs, *figures, _interval(band.low, band.high))
    return rows


def _interval(low: float | None, high: float | None) -> str:
    return "" if low is None else f"{low:.4g}..{high:.4g}"


def _odd_text(odd: OddPair, unit: str, by_distance: bool) -> str:
    pair = f"{plain_line(odd.first)}-{plain_line(odd.second)}"
    of = "what is usual at that distance" if by_distance else "the median of its level"
    how = f"{odd.ratio:.3g} times {of} ({odd.level})"
    return f"{pair}: {show_number(odd.value)} {unit}, {how}"
