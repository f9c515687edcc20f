"""Turn what a plan assumes about its tests into numbers, with elapsed times from the store.

run_models = run_models_of(plan, tests, measured_in(store, trials))
"""

import functools
import math
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from seatrial.errors import UsageError
from seatrial.plan.component_tests import fits
from seatrial.plan.model import Plan
from seatrial.plan.rehearsal_model import Behaviour, ElapsedModel
from seatrial.rehearse.disturbances import Disturbance, disturbance_of
from seatrial.rehearse.sampling import Quantity, RunModel
from seatrial.suite.check_spec import Metric
from seatrial.suite.model import Test
from seatrial.units import seconds, share_of, span_of

ONLY_BUILT = Behaviour(elapsed="1s")  # of a test without a run, of which a plan may say nothing

Measured = Callable[[str, str], tuple[float, ...]]
"""Returns the elapsed times (s) of a test in a trial of the store, by (trial, test)."""


def run_models_of(plan: Plan, tests: Collection[Test], measured: Measured) -> dict[str, RunModel]:
    """Return how runs of each test behave in a rehearsal.

    Raises UsageError, which names all tests about which the plan says nothing.
    """
    found = {test.name: behaviour_of(plan, test.name) for test in tests}
    found |= {test.name: found[test.name] or ONLY_BUILT for test in tests if test.only_builds}
    unsaid = [name for name, behaviour in found.items() if behaviour is None]
    if unsaid:
        raise UsageError(
            f"{plan.plan}: nothing is said of how {', '.join(unsaid)} would run; "
            "write e.g. rehearsal: {tests: {" + f"{unsaid[0]}: {{elapsed: 10m}}" + "}}"
        )
    return {
        test.name: _manner(behaviour, test, measured)
        for test in tests
        if (behaviour := found[test.name]) is not None
    }


def behaviour_of(plan: Plan, test: str) -> Behaviour | None:
    """Return what the plan assumes about a test: the first entry that matches, or None."""
    known = plan.rehearsal.tests
    return next((each for pattern, each in known.items() if fits([pattern], test)), None)


def disturbances_of(plan: Plan, tests: Iterable[str]) -> dict[str, list[Disturbance]]:
    """Return the events of the rehearsal that concern each test."""
    events = plan.rehearsal.events
    return {
        test: [disturbance_of(i, each) for i, each in enumerate(events) if fits(each.tests, test)]
        for test in tests
    }


def _manner(behaviour: Behaviour, test: Test, measured: Measured) -> RunModel:
    elapsed = behaviour.elapsed
    if not isinstance(elapsed, ElapsedModel):
        elapsed = ElapsedModel(mean=elapsed)
    values = tuple(seconds(value) for value in elapsed.values)
    if elapsed.trial:
        values = measured(elapsed.trial, test.name)
    keeps = behaviour.keeps
    return RunModel(
        mean=seconds(elapsed.mean) if elapsed.mean is not None else 0.0,
        sd=span_of(elapsed.sd),
        values=values,
        build=span_of(behaviour.build),
        wrong=share_of(behaviour.wrong),
        fails=share_of(behaviour.fails),
        hangs=share_of(behaviour.hangs),
        keeps=math.inf if keeps == "walltime" else span_of(keeps),
        metadata=share_of(behaviour.metadata),
        objects=share_of(behaviour.objects),
        bandwidth=behaviour.bandwidth,
        figures=tuple(_quantities(behaviour, test)),
    )


def _quantities(behaviour: Behaviour, test: Test) -> Iterable[Quantity]:
    for name, figure in behaviour.figures.items():
        metric = test.metrics.get(name)
        if not isinstance(metric, Metric):
            raise UsageError(
                f"{test.name}: the unit of {name} is known only from its output; "
                "a rehearsal can give figures of metrics that have find and unit"
            )
        yield Quantity(name, figure.mean, figure.sd, metric.unit, metric.better)


def measured_in(store_path: Path | str, trials: Path) -> Measured:
    """Return a function that looks up elapsed times of runs with a right answer in a store.

    The store is brought up to date at each look-up. The function raises UsageError if a trial has
    no such run of a test.
    """

    @functools.cache
    def measured(tag: str, test: str) -> tuple[float, ...]:
        # Few plans name a trial, and the store takes 40 ms to import.
        from seatrial.store.ingest import synced
        from seatrial.store.queries import MEASURED, runs
        from seatrial.store.rows import Filters

        with synced(store_path, trials) as store:
            found = runs(store, Filters(trial=tag, test=test))
        times = tuple(
            run.elapsed
            for run in reversed(found)
            if run.test == test and run.code in MEASURED and run.elapsed
        )
        if not times:
            raise UsageError(
                f"trial {tag} has no run of {test} whose answer was right; "
                "name another trial for its elapsed times, or give mean and sd"
            )
        return times

    return measured
