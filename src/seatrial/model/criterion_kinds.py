"""The criteria that there are, and what each is: the core's in one table, then those of plug-ins.

kind_of("mtbf").bound          # "seconds"
load(kind_of("mtbf").judge)    # the function that judges by it
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

from seatrial.hooks import CriterionKind, hookimpl, provided

_PLACE = "seatrial.results.criteria"
_STAGES = "compares both stages"
_MACHINE = "is about the whole machine"

_CORE = (
    CriterionKind("pass_rate", f"{_PLACE}.answers:pass_rate", "part", pooled=True),
    CriterionKind("correct_answers", f"{_PLACE}.answers:correct_answers", "part", pooled=True),
    CriterionKind("variability", f"{_PLACE}.speed:variability", "share"),
    CriterionKind(
        "utilisation", f"{_PLACE}.nodes:utilisation", "part", stageless=_MACHINE, machine=True
    ),
    CriterionKind(
        "availability", f"{_PLACE}.nodes:availability", "part", stageless=_MACHINE, machine=True
    ),
    CriterionKind("mtbf", f"{_PLACE}.nodes:mtbf", "seconds", stageless=_MACHINE, machine=True),
    CriterionKind(
        "slowdown",
        f"{_PLACE}.speed:slowdown",
        "change",
        component="isolated_then_full",
        stageless=_STAGES,
        metric=True,
    ),
    CriterionKind(
        "jobs_in_flight",
        f"{_PLACE}.nodes:jobs_in_flight",
        "count",
        noun="job",
        component="sustained",
        machine=True,
    ),
    CriterionKind(
        "figure_of_merit", f"{_PLACE}.speed:figure_of_merit", "metric", metric=True, alone=True
    ),
    CriterionKind("accepted_runs", f"{_PLACE}.answers:accepted_runs", "count", noun="run"),
    CriterionKind("mix", f"{_PLACE}.mix:mix", "points", component="sustained"),
    CriterionKind("items_passed", f"{_PLACE}.answers:items_passed", "part"),
    CriterionKind("every_test", f"{_PLACE}.mix:every_test", "none", noun="test"),
    CriterionKind(
        "within_expected", f"{_PLACE}.speed:within_expected", "part", metric=True, alone=True
    ),
    CriterionKind("gauge", f"{_PLACE}.gauges:gauge", "reading", stageless=_MACHINE, machine=True),
    CriterionKind("findings", f"{_PLACE}.nodes:findings", "count", noun="finding"),
)


@hookimpl
def seatrial_criteria() -> list[CriterionKind]:
    return list(_CORE)


@functools.cache
def criterion_kinds() -> Mapping[str, CriterionKind]:
    """Return the criteria that are known, by name."""
    return {kind.name: kind for kind in provided("seatrial_criteria")}


def kind_of(criterion: str) -> CriterionKind:
    """Return what is known of a criterion."""
    return criterion_kinds()[criterion]


def named(**attribute: object) -> tuple[str, ...]:
    """Return the names of the criteria with a value of an attribute: ``named(metric=True)``."""
    ((name, value),) = attribute.items()
    return tuple(kind.name for kind in criterion_kinds().values() if getattr(kind, name) == value)
