"""``seatrial suspects``: find nodes that explain failed or slow runs."""

from typing import Any

import click
from msgspec.structs import asdict, replace

from seatrial.cli import Folders
from seatrial.cli.options import (
    json_option,
    known_machine,
    list_option,
    machine_filter,
    since_filter,
    test_filter,
)
from seatrial.cli.query_common import opened, tell_damage
from seatrial.errors import UsageError
from seatrial.escaping import plain_line
from seatrial.judge import checks
from seatrial.judge.statistics.suspects import Suspect, Suspects, find
from seatrial.model import nodes
from seatrial.model.machine import Machine
from seatrial.plugins.facts import changed
from seatrial.plugins.facts.changed import SlowFacts, slow_facts
from seatrial.plugins.facts.node_facts import FactTable
from seatrial.results import slow_places
from seatrial.results.slow_places import NodeEvidence, SlowPlaces, places_of
from seatrial.results.store import queries, series
from seatrial.results.store.export import to_json
from seatrial.results.store.schema import Store
from seatrial.results.store.tables import Filters, RunOutcome, TrialRow
from seatrial.results.variability import SlowConditions, slow_conditions
from seatrial.units import count, listed, show_number

MAX_SUSPECTS = 30


MAX_FACTS = 10


LEVEL = 0.05


BESIDE = "chance by these runs alone, but it explains best what the other suspects leave"


@click.command("suspects")
@list_option(
    "--trial", "trials", "TAG", "Only of this trial; may be repeated; default: all but rehearsals."
)
@since_filter
@test_filter
@machine_filter
@json_option
@click.pass_obj
def command(folders: Folders, /, trials: tuple[str, ...], as_json: bool, **wanted: Any) -> int:
    """Name the nodes, and groups of nodes, that explain failed or slow runs better than chance.

    A run counts as bad if it failed, was at its walltime, or was far slower than the others of its
    case. p is the chance of as many bad runs for a healthy node, times the number of nodes and
    groups that were compared.
    """
    with opened(folders) as store:
        base = Filters(**wanted)
        named = [queries.trial(store, tag) for tag in trials]
        tell_damage(store, named if trials else base)
        found = _outcomes(store, named, base)
        beside = _outcomes(store, named, replace(base, test="")) if base.test else found
        if not found:
            raise UsageError(
                "no run of these trials has ended; see `seatrial runs` and `seatrial trials`"
            )
        machines: dict[str, list[RunOutcome]] = {}
        for one in found:
            machines.setdefault(one.machine, []).append(one)
        described = {name: _machine(store, name, ours) for name, ours in machines.items()}
        failed = series.failed_nodes(store)
        figures = series.figures_by_run(store, checks.UNITS)
        tables = {name: _facts(store, name) for name in machines}
        gauges = {
            name: series.gauge_readings(store, {one.trial for one in ours})
            for name, ours in machines.items()
        }
    records = {}
    for number, (name, ours) in enumerate(machines.items()):
        kinds = slow_places.classified(ours)
        jobs = slow_places.jobs_of(kinds, failed)
        site = described[name]
        groups = nodes.groups_of(site) if site else {}
        suspects = find(jobs.jobs, {node: [group] for node, group in groups.items()})
        table = tables[name]
        slow = slow_facts(ours, table) if table else None
        conditions = slow_conditions(ours, gauges[name], figures)
        places = places_of(ours, site, [one for one in beside if one.machine == name])
        if as_json:
            told: dict[str, Any] = {
                "conditions": conditions.conditions,
                "conditions_questions": conditions.questions,
                "places": places.trends,
                "places_questions": places.questions,
            }
            told |= {"facts": slow.facts, "facts_questions": slow.questions} if slow else {}
            records[name] = {**suspects_record(suspects, jobs), **told}
            continue
        if number:
            click.echo()
        if len(machines) > 1:
            click.echo(click.style(plain_line(name), bold=True))
        print_suspects(suspects, jobs)
        if slow is not None:
            _print_slow_facts(slow)
        _print_conditions(conditions)
        print_places(places)
    if as_json:
        click.echo(to_json(records), nl=False)
    return 0


def _outcomes(store: Store, trials: list[TrialRow], base: Filters) -> list[RunOutcome]:
    """Return the runs of these trials, each once; of all trials but rehearsals if none is named."""
    if not trials:
        return series.outcomes(store, base)
    paths = dict.fromkeys(trial.path for trial in trials)
    return [one for path in paths for one in series.outcomes(store, replace(base, trial=path))]


def _machine(store: Store, machine: str, runs: list[RunOutcome]) -> "Machine | None":
    """Return the description of a machine, from the latest trial of these runs that has one."""
    tags = {one.trial for one in runs}
    trials = (each for each in queries.trials(store) if each.tag in tags)  # newest first
    described = (known_machine(each) for each in trials if each.machine == machine)
    return next(filter(None, described), None)


def _facts(store: Store, machine: str) -> FactTable | None:
    """Return the newest facts of a machine's nodes; None if nobody collected them."""
    for one in changed.collected(store, machine):
        try:
            return one.table()
        except UsageError:  # its files are gone
            continue
    return None


def print_suspects(found: Suspects, evidence: NodeEvidence) -> None:
    """Print the suspects with their odds against chance, or why there are none."""
    share = f"{found.bad} of {count(found.runs, 'run')} failed or were slow"
    if more := sum(evidence.left_out.values()):
        share += f" ({count(more, 'run')} more left out, as told below)"
    if found.why:
        click.echo(f"{share}; no node can be accused: {found.why}")
    elif not found.suspects:
        click.echo(f"{share}; no node or group explains that better than chance")
    else:
        click.echo(
            f"{share}; {found.unexplained} of these without any of the suspects "
            f"({found.candidates} nodes and groups compared)"
        )
        for suspect in found.suspects[:MAX_SUSPECTS]:
            click.echo(f"  {_sentence(suspect)}")
        if len(found.suspects) > MAX_SUSPECTS:
            click.echo(f"  and {len(found.suspects) - MAX_SUSPECTS} more")
    if left_out := evidence.left_out:
        reasons = ", ".join(f"{number} {plain_line(why)}" for why, number in left_out.items())
        click.echo(f"left out: {count(sum(left_out.values()), 'run')}: {reasons}")


def _print_slow_facts(found: SlowFacts) -> None:
    """Print the facts of nodes that go with slow or fast runs."""
    for one in found.facts[:MAX_FACTS]:
        more = f" (so do {listed(one.keys[1:], 4)})" if len(one.keys) > 1 else ""
        percent = abs(one.ratio - 1) * 100
        how = "longer" if one.ratio > 1 else "shorter"
        click.echo(
            f"  runs on nodes with {plain_line(one.keys[0])} {plain_line(one.value)!r}{more} take "
            f"{percent:.2g} % {how}: {one.count} of {one.of} nodes, "
            f"{plain_line(one.nodes)}; p = {one.p:.2g}, corrected"
        )
    if found.questions and not found.facts:
        click.echo(f"  no fact of nodes goes with slow runs ({found.questions} compared)")


def _print_conditions(found: SlowConditions) -> None:
    """Print the targets, gauges and figures of file use that go with slow or fast runs."""
    for one in found.conditions[:MAX_FACTS]:
        where = f"on the target {plain_line(one.name)}"
        if one.above is not None:
            where = f"while {plain_line(one.name)} was above {show_number(one.above)}"
        elif one.kind == "figure":
            where = f"with more {plain_line(one.name)} than half of their case"
        percent, how = abs(one.ratio - 1) * 100, "longer" if one.ratio > 1 else "shorter"
        click.echo(
            f"  runs {where} took {percent:.2g} % {how}: {one.runs} of {count(one.of, 'run')}; "
            f"p = {one.p:.2g}, corrected"
        )
    if found.questions and not found.conditions:
        click.echo(
            f"  no target, gauge or use of files goes with slow runs ({found.questions} compared)"
        )


def print_places(found: SlowPlaces) -> None:
    """Print whether times go with where nodes were in the network."""
    for one in found.trends[:MAX_FACTS]:
        click.echo(f"  {plain_line(one.sentence)}")
    if found.questions and not found.trends:
        click.echo(f"  no place in the network goes with slow runs ({found.questions} compared)")


def _sentence(suspect: Suspect) -> str:
    names = plain_line(listed(suspect.names, 8))
    what = "group " if suspect.kind == "group" else ""
    together = " (always together, and not to be told apart)" if len(suspect.names) > 1 else ""
    p = f"p = {suspect.p:.2g}" if suspect.p >= 1e-12 else "p < 1e-12"
    return (
        f"{what}{names}{together}: {suspect.bad} of {count(suspect.runs, 'run')} with it "
        f"went wrong, where chance would give {show_number(suspect.expected)}; {p}, corrected"
        + (f": {BESIDE}" if suspect.p >= LEVEL else "")
    )


def suspects_record(found: Suspects, evidence: NodeEvidence) -> dict[str, Any]:
    """Return the suspects for JSON."""
    return {**asdict(found), "left_out": evidence.left_out}
