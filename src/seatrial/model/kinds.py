"""The criteria that plans may have, and the programs that start the tasks of runs: the core's, then
those of plug-ins.

kind_of("mtbf").bound          # "seconds"
load(kind_of("mtbf").judge)    # the function that judges by it
load(launcher_kinds()["srun"].arguments)    # the function that returns the words of its line
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

from seatrial.hooks import CriterionKind, LauncherKind, hookimpl, provided

_CRITERIA = "seatrial.results.criteria"
_STAGES = "compares both stages"
_MACHINE = "is about the whole machine"

_CORE_CRITERIA = (
    CriterionKind("pass_rate", f"{_CRITERIA}.answers:pass_rate", "part", pooled=True),
    CriterionKind("correct_answers", f"{_CRITERIA}.answers:correct_answers", "part", pooled=True),
    CriterionKind("variability", f"{_CRITERIA}.speed:variability", "share"),
    CriterionKind(
        "utilisation", f"{_CRITERIA}.nodes:utilisation", "part", stageless=_MACHINE, machine=True
    ),
    CriterionKind(
        "availability", f"{_CRITERIA}.nodes:availability", "part", stageless=_MACHINE, machine=True
    ),
    CriterionKind("mtbf", f"{_CRITERIA}.nodes:mtbf", "seconds", stageless=_MACHINE, machine=True),
    CriterionKind(
        "slowdown",
        f"{_CRITERIA}.speed:slowdown",
        "change",
        component="isolated_then_full",
        stageless=_STAGES,
        metric=True,
    ),
    CriterionKind(
        "jobs_in_flight",
        f"{_CRITERIA}.nodes:jobs_in_flight",
        "count",
        noun="job",
        component="sustained",
        machine=True,
    ),
    CriterionKind(
        "figure_of_merit", f"{_CRITERIA}.speed:figure_of_merit", "metric", metric=True, alone=True
    ),
    CriterionKind("accepted_runs", f"{_CRITERIA}.answers:accepted_runs", "count", noun="run"),
    CriterionKind("mix", f"{_CRITERIA}.mix:mix", "points", component="sustained"),
    CriterionKind("items_passed", f"{_CRITERIA}.answers:items_passed", "part"),
    CriterionKind("every_test", f"{_CRITERIA}.mix:every_test", "none", noun="test"),
    CriterionKind(
        "within_expected", f"{_CRITERIA}.speed:within_expected", "part", metric=True, alone=True
    ),
    CriterionKind("gauge", f"{_CRITERIA}.nodes:gauge", "reading", stageless=_MACHINE, machine=True),
    CriterionKind("findings", f"{_CRITERIA}.nodes:findings", "count", noun="finding"),
)


@hookimpl
def seatrial_criteria() -> list[CriterionKind]:
    return list(_CORE_CRITERIA)


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


NO_LAUNCHER = "none"  # scripts start their tasks themselves


# ---- launchers -----------------------------------------------------------------------------------
#
# The programs that start the tasks of runs.


_LAUNCHERS = "seatrial.execute.launchers"


@hookimpl
def seatrial_launchers() -> list[LauncherKind]:
    return [
        LauncherKind("srun", f"{_LAUNCHERS}:srun_arguments", orders=True),
        LauncherKind("mpirun", f"{_LAUNCHERS}:mpi_arguments", orders=True),
        LauncherKind("mpiexec", f"{_LAUNCHERS}:mpi_arguments", orders=True),
        LauncherKind("aprun", f"{_LAUNCHERS}:aprun_arguments", orders=True),
        LauncherKind("jsrun", f"{_LAUNCHERS}:jsrun_arguments"),
    ]


@functools.cache
def launcher_kinds() -> Mapping[str, LauncherKind]:
    """Return the kinds of launchers that are known, by name; ``none`` is the last."""
    kinds = [*provided("seatrial_launchers"), LauncherKind(NO_LAUNCHER, "")]
    return {kind.name: kind for kind in kinds}
