"""``seatrial bands``: latency and bandwidth of pairs by level of the network and kind of core."""

from __future__ import annotations

from pathlib import Path

import click

from seatrial.cli import Folders
from seatrial.cli.options import json_option
from seatrial.cli.query_common import opened, print_page, trial_or_file
from seatrial.errors import UsageError
from seatrial.execute.detect import find_machine
from seatrial.model.machine import Machine
from seatrial.model.machine_topology import known_topology
from seatrial.results.bands import PairLine, bands_of, lines_of_file, lines_of_trial
from seatrial.show.bands import bands_page


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
    lines, site = _lines_of(folders, source)
    if machine is not None:
        site = find_machine(machine).machine
    if site is None:
        raise UsageError(f"{source}: levels come from a machine; name it with --machine")
    page = bands_page(bands_of(lines, known_topology(site)))
    print_page(page, "json" if as_json else "table")
    return 0


def _lines_of(folders: Folders, source: str) -> tuple[list[PairLine], Machine | None]:
    """Return the pairs of a trial or file, and the machine of the trial."""
    if Path(source).is_file():
        return lines_of_file(Path(source)), None
    with opened(folders) as store:
        return lines_of_trial(store, trial_or_file(store, source))
