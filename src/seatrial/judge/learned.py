"""References learned from a trial: measured medians, with a tolerance from their spread."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import NamedTuple

from seatrial.store import queries
from seatrial.store.rows import CaseRow, TrialRow
from seatrial.store.schema import Store
from seatrial.suite.model import Better, show
from seatrial.verify.learning import learn
from seatrial.verify.references import Learned, Reference


class Learning(NamedTuple):
    """The references that a trial gives, and what gives none: (what, why)."""

    references: list[Reference]
    left_out: list[tuple[str, str]]


def learn_from(store: Store, trial: TrialRow, metric: str = "") -> Learning:
    """One reference for each metric (or that metric alone) of cases that differ in nothing but
    their node, from the figures of runs whose answer was right. The formula of the tolerance is
    that of ``verify.learning.learn``."""
    learning = Learning([], [])
    for pool in _pools(store, trial):
        if metric and pool.metric != metric:
            continue
        what = f"{pool.case.name.removesuffix(f'%{pool.case.node}')} {pool.metric}"
        try:
            learning.references.append(_reference(pool, trial.tag))
        except ValueError as error:
            learning.left_out.append((what, str(error)))
    return learning


class _Pool(NamedTuple):
    """The figures of one metric over the cases that one reference is for; ``case`` is the first."""

    case: CaseRow
    metric: str
    kinds: set[tuple[str, str]]  # unit and direction
    values: list[float]


def _pools(store: Store, trial: TrialRow) -> Iterable[_Pool]:
    cases = {case.id: case for case in queries.cases_of(store, trial)}
    pools: dict[tuple[object, ...], _Pool] = {}
    for samples in queries.samples(store, trial):
        case = cases[samples.case]
        bound = tuple(sorted((name, show(value)) for name, value in case.parameters.items()))
        key = (case.test, samples.metric, bound, case.toolchain)
        pool = pools.setdefault(key, _Pool(case, samples.metric, set(), []))
        pool.kinds.add((samples.unit, samples.better))
        pool.values.extend(samples.values)
    return pools.values()


def _reference(pool: _Pool, tag: str) -> Reference:
    """Raises ValueError where none can come of the figures."""
    if not pool.values:
        raise ValueError("no run of it gave a right answer")
    if len(pool.kinds) > 1:
        units = ", ".join(sorted(" ".join(kind) for kind in pool.kinds))
        raise ValueError(f"its figures differ in unit or direction: {units}")
    ((unit, direction),) = pool.kinds
    better: Better = "lower" if direction == "lower" else "higher"
    value, lower, upper = learn(pool.values, better)
    case = pool.case
    return Reference(
        test=case.test,
        metric=pool.metric,
        unit=unit,
        where=case.parameters,
        toolchain=case.toolchain or None,
        value=value,
        lower=lower,
        upper=upper,
        learned=Learned(trial=tag, runs=len(pool.values), at=time.strftime("%Y-%m-%d")),
    )
