"""``seatrial suspects``: the nodes that explain failed or slow runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from seatrial.cli import Folders

if TYPE_CHECKING:
    from seatrial.store.rows import RunOutcome
    from seatrial.store.schema import Store


@click.command("suspects")
@click.option("--trial", "trials", multiple=True, metavar="TAG", help="Only of this; repeatable.")
@click.option("--since", metavar="TIME", help="Created since: 2h, 3d, 2026-11-20, ...T14:03.")
@click.option("-k", "--test", default="", metavar="PATTERN", help="Tests: a part, or e.g. io_*.")
@click.option("-m", "--machine", default="", metavar="PATTERN", help="Only on this machine.")
@click.option("--json", "as_json", is_flag=True, help="Print all of it as JSON.")
@click.pass_obj
def command(
    folders: Folders,
    trials: tuple[str, ...],
    since: str | None,
    test: str,
    machine: str,
    as_json: bool,
) -> int:
    """Name the nodes, and groups of nodes, that explain failed or slow runs better than chance.

    A run counts as bad if it failed, was at its walltime, or was far slower than the others of its
    case. p is the chance of as many bad runs for a healthy node, times the number of nodes and
    groups that were compared.
    """
    from seatrial.cli.query_common import moment, opened
    from seatrial.cli.suspect_text import print_suspects, suspects_record
    from seatrial.errors import UsageError
    from seatrial.statistics.suspects import find
    from seatrial.store.rows import Filters
    from seatrial.studies import evidence

    start = moment(since) if since else 0
    base = Filters(since=start, test=test, machine=machine)
    with opened(folders) as store:
        found = _outcomes(store, trials, base)
        if not found:
            raise UsageError("no such run is over; see `seatrial runs` and `seatrial trials`")
        machines = {one.machine: None for one in found}
        groups = {name: _groups(store, name, found) for name in machines}
    records = {}
    for number, name in enumerate(machines):
        kinds = evidence.classified([one for one in found if one.machine == name])
        jobs = evidence.jobs_of(kinds)
        suspects = find(jobs.jobs, {node: [group] for node, group in groups[name].items()})
        if as_json:
            records[name] = suspects_record(suspects, jobs)
            continue
        if number:
            click.echo()
        if len(machines) > 1:
            from seatrial.verify.reading import plain_line

            click.echo(click.style(plain_line(name), bold=True))
        print_suspects(suspects, jobs)
    if as_json:
        from seatrial.store.export import to_json

        click.echo(to_json(records), nl=False)
    return 0


def _outcomes(store: Store, trials: tuple[str, ...], base: Any) -> list[RunOutcome]:
    """The runs of these trials, each once; of all real ones where none is named."""
    from msgspec.structs import replace

    from seatrial.store import queries, series

    if not trials:
        return series.outcomes(store, base)
    paths = dict.fromkeys(queries.trial(store, tag).path for tag in trials)
    return [one for path in paths for one in series.outcomes(store, replace(base, trial=path))]


def _groups(store: Store, machine: str, found: list[RunOutcome]) -> dict[str, str]:
    """The groups of a machine as its latest trial among these knows them."""
    from seatrial.errors import SeatrialError
    from seatrial.machine.facts import groups_of
    from seatrial.store import queries
    from seatrial.trial.folder import TrialFolder

    tags = {one.trial for one in found if one.machine == machine}
    for trial in queries.trials(store):  # newest first
        if trial.machine == machine and trial.tag in tags:
            try:
                return groups_of(TrialFolder(Path(trial.path)).record().machine)
            except (SeatrialError, ValueError):
                continue  # its folder is gone, or was made by another version
    return {}
