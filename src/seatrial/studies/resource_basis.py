"""Figures by what they took: for each core, each node, or each node-hour.

side = per_resource(gather(store, parse_side("hopper")), "core")
side.cases[0].values[("triad", "MB/s/core", "higher")]

A rate is divided by the resources; a time is multiplied with them, which gives core-seconds and the
like. A node-hour is the nodes times the time: of a time itself in hours, of a rate by the median
elapsed time of the case.
"""

from statistics import median
from typing import Literal

from msgspec.structs import replace

from seatrial.errors import UsageError
from seatrial.store.by_case import CORES, ELAPSED, CaseRuns, Kind
from seatrial.studies.selection import Side

Resource = Literal["core", "node", "node-hour"]
SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "min": 60.0, "h": 3600.0}


def per_resource(side: Side, resource: Resource) -> Side:
    """Return the side with its figures on that basis; figures without a direction, and times in no
    known unit, are left out. Raises UsageError for a case of which the resources are not known, and
    for figures that somebody else gave."""
    if side.given:
        raise UsageError(f"--per {resource}: {side.text} was given, and does not tell what it took")
    return replace(side, cases=[_case(one, resource) for one in side.cases])


def _case(one: CaseRuns, resource: Resource) -> CaseRuns:
    count = float(one.attribute(CORES) or 0) if resource == "core" else float(one.nodes or 0)
    if count <= 0 and one.values:
        what = "tasks and threads" if resource == "core" else "nodes"
        raise UsageError(f"--per {resource}: {one.test} of {one.trial} does not tell its {what}")
    found: dict[Kind, list[float]] = {}
    jobs: dict[Kind, list[str]] = {}
    for kind, values in one.values.items():
        if based := _based(one, kind, count, resource):
            name, factor = based
            found[name] = [value * factor for value in values]
            jobs[name] = one.jobs.get(kind, [])
    return replace(one, values=found, jobs=jobs)


def _based(
    one: CaseRuns, kind: Kind, count: float, resource: Resource
) -> tuple[Kind, float] | None:
    """Return the metric on its basis, and the factor of its figures; None if it has none."""
    name, unit, better = kind
    if better == "lower" and unit in SECONDS:
        if resource == "node-hour":
            return (name, "node-h", better), count * SECONDS[unit] / 3600
        return (name, f"{resource}-{unit}", better), count
    if better != "higher":
        return None
    if resource != "node-hour":
        return (name, f"{unit}/{resource}", better), 1 / count
    elapsed = one.values.get(ELAPSED)
    if not elapsed or median(elapsed) <= 0:
        return None
    return (name, f"{unit}/node-h", better), 3600 / (count * median(elapsed))
