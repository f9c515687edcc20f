"""``seatrial suspects``: find nodes that explain failed or slow runs."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import click
from msgspec.structs import replace

from seatrial.cli import Folders
from seatrial.cli.options import (
    json_option,
    list_option,
    machine_filter,
    since_filter,
    test_filter,
    text_option,
    together,
)
from seatrial.cli.query_common import opened, print_page, tell_damage
from seatrial.errors import UsageError
from seatrial.escaping import plain_line
from seatrial.execute.trial_folder import known_machine
from seatrial.hooks import SuspectSource, load, provided
from seatrial.judge import checks
from seatrial.judge.statistics.suspects import find
from seatrial.model import nodes
from seatrial.model.machine import Machine
from seatrial.results import slow_places
from seatrial.results.fact_sources import SlowFacts, slow_facts, told_of_nodes
from seatrial.results.slow_places import places_of
from seatrial.results.store import queries, series
from seatrial.results.store.schema import Store
from seatrial.results.store.tables import Filters, RunOutcome, TrialRow
from seatrial.results.variability import Figures, slow_conditions
from seatrial.show.page import Page, Part, Section
from seatrial.show.suspects import (
    MAX_FACTS,
    conditions_parts,
    found_or_none,
    nodes_parts,
    places_parts,
    slower,
    suspects_parts,
    suspects_record,
)
from seatrial.units import listed


def _sources() -> list[SuspectSource]:
    return [*provided("seatrial_suspect_sources")]


source_options = together(
    *(
        text_option(f"--{source.option.name}", source.metavar, source.option.help)
        for source in _sources()
    )
)


@click.command("suspects")
@list_option(
    "--trial", "trials", "TAG", "Only of this trial; may be repeated; default: all but rehearsals."
)
@since_filter
@test_filter
@machine_filter
@source_options
@json_option
@click.pass_obj
def command(folders: Folders, /, trials: tuple[str, ...], as_json: bool, **wanted: Any) -> int:
    """Name the nodes, and groups of nodes, that explain failed or slow runs better than chance.

    A run counts as bad if it failed, was at its walltime, or was far slower than the others of its
    case. p is the chance of as many bad runs for a healthy node, times the number of nodes and
    groups that were compared.
    """
    asked = {source: wanted.pop(source.option.name) for source in _sources()}
    with opened(folders) as store:
        base = Filters(**wanted)
        named = [queries.trial(store, tag) for tag in trials]
        tell_damage(store, named if trials else base)
        answers = _answers(store, named, base)
        if not answers and not any(asked.values()):
            raise UsageError(
                "no run of these trials has ended; see `seatrial runs` and `seatrial trials`"
            )
        by_runs = {name: answer.accused for name, answer in answers.items()}
        beside = [
            load(source.accuse)(store, base.machine, value, by_runs)
            for source, value in asked.items()
            if value
        ]
    page = _page(answers, beside)
    print_page(page, "json" if as_json else "table")
    return 0


class _Answer(NamedTuple):
    """What explains the runs of a machine, for people and as JSON, and the nodes accused."""

    parts: list[Part]
    record: dict[str, Any]
    accused: set[str]


def _page(answers: dict[str, _Answer], beside: list[Page]) -> Page:
    """Return what explains runs, and what others say beside them."""
    title = "Runs of trials on {}" if beside else "{}" if len(answers) > 1 else ""
    sections = [Section(title.format(name), answer.parts) for name, answer in answers.items()]
    records = {name: answer.record for name, answer in answers.items()}
    for page in beside:
        sections += page.sections
        for name, record in page.records().items():
            records[name] = records.get(name, {}) | record
    return Page("Suspects", sections, records=lambda: records)


def _answers(store: Store, named: list[TrialRow], base: Filters) -> dict[str, _Answer]:
    """Return what explains the runs of each machine."""
    found = _outcomes(store, named, base)
    beside = _outcomes(store, named, replace(base, test="")) if base.test else found
    machines: dict[str, list[RunOutcome]] = {}
    for one in found:
        machines.setdefault(one.machine, []).append(one)
    failed = series.failed_nodes(store)
    figures = series.figures_by_run(store, checks.UNITS)
    return {
        name: _answer(store, name, ours, beside, failed, figures) for name, ours in machines.items()
    }


def _answer(
    store: Store,
    machine: str,
    runs: list[RunOutcome],
    beside: list[RunOutcome],
    failed: dict[int, set[str]],
    figures: Figures,
) -> _Answer:
    """Return what explains the runs of a machine."""
    jobs = slow_places.jobs_of(slow_places.classified(runs), failed)
    site = _machine(store, machine, runs)
    groups = nodes.groups_of(site) if site else {}
    suspects = find(jobs.jobs, {node: [group] for node, group in groups.items()})
    gauges = series.gauge_readings(store, {one.trial for one in runs})
    conditions = slow_conditions(runs, gauges, figures)
    places = places_of(runs, site, [one for one in beside if one.machine == machine])
    parts = [*suspects_parts(suspects, jobs)]
    record = {
        **suspects_record(suspects, jobs),
        "conditions": conditions.conditions,
        "conditions_questions": conditions.questions,
        "places": places.trends,
        "places_questions": places.questions,
    }
    if told := told_of_nodes(store, machine, runs):
        parts += nodes_parts(suspects, told)
        record |= {"told_of_nodes": told}
    slow = slow_facts(store, machine, runs)
    if slow is not None:
        parts += _facts_parts(slow)
        record |= {"facts": slow.facts, "facts_questions": slow.questions}
    accused = {name for one in suspects.suspects for name in one.names}
    parts += [*conditions_parts(conditions), *places_parts(places)]
    return _Answer(parts, record, accused)


def _facts_parts(found: SlowFacts) -> Iterator[Part]:
    """Yield the facts of nodes that go with slow or fast runs."""
    sentences = []
    for one in found.facts[:MAX_FACTS]:
        more = f" (so do {listed(one.keys[1:], 4)})" if len(one.keys) > 1 else ""
        sentences.append(
            f"runs on nodes with {one.keys[0]} {plain_line(one.value)!r}{more} take "
            f"{slower(one.ratio)}: {one.count} of {one.of} nodes, {one.nodes}; "
            f"p = {one.p:.2g}, corrected"
        )
    return found_or_none(sentences, "fact of nodes", found.questions)


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
    described = (known_machine(Path(each.path)) for each in trials if each.machine == machine)
    return next(filter(None, described), None)
