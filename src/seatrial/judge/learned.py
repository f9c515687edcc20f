"""References learned from a trial: measured medians, with a tolerance from their spread."""

from __future__ import annotations

import time
from typing import NamedTuple

from seatrial.store import queries
from seatrial.store.rows import CaseRow, Samples, TrialRow
from seatrial.store.schema import Store
from seatrial.suite.model import Better
from seatrial.verify.learning import learn
from seatrial.verify.references import Learned, Reference


class Learning(NamedTuple):
    """The references that a trial gives, and what gives none: (what, why)."""

    references: list[Reference]
    left_out: list[tuple[str, str]]


def learn_from(store: Store, trial: TrialRow, metric: str = "") -> Learning:
    """One reference for each case and metric (or that metric alone) with figures of runs whose
    answer was right. The formula of the tolerance is that of ``verify.learning.learn``."""
    cases = {case.id: case for case in queries.cases_of(store, trial)}
    learning = Learning([], [])
    for samples in queries.samples(store, trial):
        if metric and samples.metric != metric:
            continue
        what = f"{samples.case_name} {samples.metric}"
        if not samples.values:
            learning.left_out.append((what, "no run of it gave a right answer"))
            continue
        try:
            learning.references.append(_reference(samples, cases[samples.case], trial.tag))
        except ValueError as error:
            learning.left_out.append((what, str(error)))
    return learning


def _reference(samples: Samples, case: CaseRow, tag: str) -> Reference:
    better: Better = "lower" if samples.better == "lower" else "higher"
    value, lower, upper = learn(samples.values, better)
    return Reference(
        test=case.test,
        metric=samples.metric,
        unit=samples.unit,
        where=case.parameters,
        toolchain=case.toolchain or None,
        value=value,
        lower=lower,
        upper=upper,
        learned=Learned(trial=tag, runs=len(samples.values), at=time.strftime("%Y-%m-%d")),
    )
