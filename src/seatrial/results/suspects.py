"""What explains the failed and slow runs of a machine better than chance: nodes, conditions, facts.

found = explanations(store, trials, filters)
found["frontier"].suspects, found["frontier"].conditions
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from seatrial.execute.trial_folder import known_machine
from seatrial.judge import file_use
from seatrial.judge.statistics.outliers import Suspects, find_suspects
from seatrial.model import nodes
from seatrial.model.machine import Machine
from seatrial.results.fact_sources import SlowFacts, slow_facts, told_of_nodes
from seatrial.results.slow_places import (
    NodeEvidence,
    SlowPlaces,
    classified,
    jobs_of,
    places_of,
)
from seatrial.results.store import queries, series
from seatrial.results.store.schema import Store
from seatrial.results.store.tables import Filters, RunOutcome, TrialRow
from seatrial.results.variability import Figures, SlowConditions, slow_conditions


class Explanation(Struct, frozen=True, kw_only=True):
    """What goes with the failed and slow runs of a machine. ``told``: what else is known of nodes;
    ``facts``: None without a source of facts."""

    suspects: Suspects
    evidence: NodeEvidence
    conditions: SlowConditions
    places: SlowPlaces
    told: dict[str, list[str]]
    facts: SlowFacts | None

    @property
    def accused(self) -> set[str]:
        """The nodes, or groups of nodes, that are suspects."""
        return {name for suspect in self.suspects.suspects for name in suspect.names}


def explanations(
    store: Store, trials: Sequence[TrialRow], filters: Filters
) -> dict[str, Explanation]:
    """Return what explains the runs of each machine, by its name. Only of ``trials`` if there are
    some; else of all but rehearsals."""
    found = _outcomes(store, trials, filters)
    beside = found
    if filters.test:  # where a run was in the network is judged beside all tests
        beside = _outcomes(store, trials, replace(filters, test=""))
    machines: dict[str, list[RunOutcome]] = {}
    for one in found:
        machines.setdefault(one.machine, []).append(one)
    failed = series.failed_nodes(store)
    figures = series.figures_by_run(store, file_use.UNITS)
    return {
        name: _explanation(store, name, runs, beside, failed, figures)
        for name, runs in machines.items()
    }


def _explanation(
    store: Store,
    machine: str,
    runs: list[RunOutcome],
    beside: list[RunOutcome],
    failed: dict[int, set[str]],
    figures: Figures,
) -> Explanation:
    evidence = jobs_of(classified(runs), failed)
    site = _machine(store, machine, runs)
    groups = nodes.groups_of(site) if site else {}
    gauges = series.gauge_readings(store, {one.trial for one in runs})
    return Explanation(
        suspects=find_suspects(evidence.jobs, {node: [group] for node, group in groups.items()}),
        evidence=evidence,
        conditions=slow_conditions(runs, gauges, figures),
        places=places_of(runs, site, [one for one in beside if one.machine == machine]),
        told=told_of_nodes(store, machine, runs),
        facts=slow_facts(store, machine, runs),
    )


def _outcomes(store: Store, trials: Sequence[TrialRow], filters: Filters) -> list[RunOutcome]:
    """Return the runs of these trials, each once; of all trials but rehearsals if none is named."""
    if not trials:
        return series.outcomes(store, filters)
    paths = dict.fromkeys(trial.path for trial in trials)
    return [one for path in paths for one in series.outcomes(store, replace(filters, trial=path))]


def _machine(store: Store, machine: str, runs: Sequence[RunOutcome]) -> Machine | None:
    """Return the description of a machine, from the latest trial of these runs that has one."""
    tags = {one.trial for one in runs}
    trials = (each for each in queries.trials(store) if each.tag in tags)  # newest first
    described = (known_machine(Path(each.path)) for each in trials if each.machine == machine)
    return next(filter(None, described), None)
