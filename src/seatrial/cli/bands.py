"""``seatrial bands``: latency and bandwidth of pairs by level of the network."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from statistics import median
from typing import Any

import click
import msgspec

from seatrial.cli import Folders
from seatrial.cli.options import json_option
from seatrial.cli.query_common import opened, tell_damage
from seatrial.cli.tables import TextTable
from seatrial.errors import UsageError
from seatrial.layout.topology import NODE, SYSTEM, Topology
from seatrial.machine.load import find_machine
from seatrial.machine.model import Machine
from seatrial.machine.topologies import topology_of
from seatrial.statistics.bands import Bands, Better, Pair, expected_mean, judge
from seatrial.store import queries
from seatrial.store.export import to_json
from seatrial.store.rows import Filters
from seatrial.trial.folder import TrialFolder
from seatrial.units import count, show_number
from seatrial.verify.pair_lines import PairLine, pair_lines
from seatrial.verify.reading import Unreadable, head, plain, plain_line, read_text

LIMIT = 2**26
MAX_ODD = 20
UNITS: dict[str, tuple[str, Better]] = {
    "latency": ("us", "lower"),
    "bandwidth": ("MiB/s", "higher"),
}


@click.command("bands")
@click.argument("source", metavar="TRIAL|FILE")
@click.option("-m", "--machine", help="Machine whose topology is used; default: the trial's.")
@json_option
@click.pass_obj
def command(folders: Folders, source: str, machine: str | None, as_json: bool) -> int:
    """Show latency and bandwidth of pairs of nodes by level of the network.

    Of TRIAL: all right runs of the probe `pingpong`. FILE: an output of `pingpong`. A node pair of
    several runs or ranks has the median of its figures.
    """
    site: Machine | None = None
    if Path(source).is_file():
        lines = _lines(Path(source))
    else:
        lines, site = _of_trial(folders, source)
    if machine is not None:
        site = find_machine(machine).machine
    if site is None:
        raise UsageError(f"{source}: levels come from a machine; name it with --machine")
    topology = topology_of(site)
    if topology is None:
        raise UsageError(
            f"the file of {site.machine} tells nothing of its network; "
            "write `topology` or `groups` (docs/machines.md)"
        )
    levels = [NODE, *(level.name for level in topology.levels), SYSTEM]
    records: dict[str, Any] = {}
    for name, (unit, better) in UNITS.items():
        found = judge(_pairs(lines, name, topology), levels, better)
        records[name] = {"unit": unit, **msgspec.to_builtins(found)}
        records[name]["expected_mean"] = expected = _expected(found, topology)
        if not as_json:
            if len(records) > 1:
                click.echo()
            _print(name, unit, found, expected)
    if as_json:
        click.echo(to_json(records), nl=False)
    return 0


# ---- where figures come from --------------------------------------------------------------


def _lines(file: Path) -> list[PairLine]:
    try:
        return pair_lines(read_text(Path(), str(file), LIMIT, "judge fewer pairs"))
    except Unreadable as error:
        raise UsageError(str(error)) from None
    except ValueError as error:
        raise UsageError(f"{file}: {plain(str(error))[:300]}") from None


def _of_trial(folders: Folders, source: str) -> tuple[list[PairLine], Machine]:
    with opened(folders) as store:
        try:
            trial = queries.trial(store, source)
        except UsageError as error:
            raise UsageError(f"{error}; and there is no file {source!r}") from None
        tell_damage(store, [trial])
        runs = queries.runs(store, Filters(trial=trial.path))
    found: list[PairLine] = []
    for run in runs:
        file = Path(run.path or "") / "stdout"
        start = head(file, 4096) if run.path and run.code in queries.MEASURED else None
        if start is not None and "\npair " in f"\n{start.text}":
            found += _lines(file)
    if not found:
        raise UsageError(
            f"{trial.tag}: no run with a right answer has figures of pairs; run the probe "
            "`pingpong`: seatrial run suites/probes -k pingpong --set hosts=8,ranks=1"
        )
    return found, TrialFolder(Path(trial.path)).record().machine


def _pairs(lines: list[PairLine], name: str, topology: Topology) -> list[Pair]:
    """Return a figure for each pair of nodes, and for each pair of ranks on a node. Raises
    UsageError for nodes that the topology lacks."""
    number = topology.number_of
    figures: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    lost: dict[str, None] = {}
    for line in lines:
        a, b = (node if node in number else node.partition(".")[0] for node in line.nodes)
        lost |= dict.fromkeys(node for node in (a, b) if node not in number)
        cores = " ".join(map(str, sorted(line.cpus))) if a == b else ""
        figures[min(a, b), max(a, b), cores].append(getattr(line, name))
    if lost:
        raise UsageError(
            f"{', '.join(map(plain_line, list(lost)[:8]))}: not in the topology of the machine; "
            "give these nodes a place in its file (docs/machines.md#topology), or name another "
            "machine with --machine"
        )
    found = []
    for (a, b, _), values in figures.items():
        ends = number[a], number[b]
        found.append(Pair(a, b, topology.level(*ends), topology.hops(*ends), median(values)))
    return found


def _expected(found: Bands, topology: Topology) -> float | None:
    """Return the mean of evenly drawn pairs of different nodes of the machine; None where a level
    that has pairs was not measured."""
    medians = {band.level: band.median for band in found.bands}
    names = [*(level.name for level in topology.levels), SYSTEM]
    counts = {name: pairs for name, pairs in zip(names, topology.pairs(), strict=True) if pairs}
    if not counts or counts.keys() - medians.keys():
        return None
    return expected_mean([medians[name] for name in counts], [*counts.values()])


# ---- in words -----------------------------------------------------------------------------


def _print(name: str, unit: str, found: Bands, expected: float | None) -> None:
    rows = TextTable(f"level | pairs> | {name} {unit}> | 95 %> | modes>")
    for band in found.bands:
        ends = "" if band.low is None else f"{band.low:.4g}..{band.high:.4g}"
        rows.add(band.level, band.pairs, f"{band.median:.4g}", ends, band.modes)
    click.echo(rows)
    if len(found.bands) == 1:
        click.echo(f"all pairs are of one level, {found.bands[0].level}: nothing to compare")
    for step in found.steps:
        click.echo(_step_text(name, step.smaller, step.larger, step.ratio, step.p, step.proven))
    if found.hop is not None:
        hop = found.hop
        click.echo(f"{hop.cost:.3g} {unit} a hop ({hop.low:.3g}..{hop.high:.3g})")
    if expected is not None:
        click.echo(f"expected mean of evenly drawn pairs of nodes: {expected:.4g} {unit}")
    for odd in found.odd[:MAX_ODD]:
        pair = f"{plain_line(odd.first)}-{plain_line(odd.second)}"
        how = f"{odd.ratio:.3g} times the median of its level ({odd.level})"
        click.echo(f"beyond its band: {pair}: {show_number(odd.value)} {unit}, {how}")
    if len(found.odd) > MAX_ODD:
        click.echo(f"and {count(len(found.odd) - MAX_ODD, 'pair')} more; --json has them")


def _step_text(
    name: str, smaller: str, larger: str, ratio: float, p: float | None, proven: bool
) -> str:
    if p is None:
        return f"{larger} against {smaller}: too few pairs for a test"
    if not proven:
        return f"{larger} against {smaller}: {name} cannot be told apart (p = {p:.2g}, corrected)"
    expected = (ratio > 1) == (name == "latency")
    word = "" if expected else "; this is no order of levels: the smaller one is worse"
    return (
        f"{larger} against {smaller}: {ratio:.3g} times the {name} (p = {p:.2g}, corrected){word}"
    )
