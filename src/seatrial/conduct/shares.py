"""The share of the machine that each test of a sustained trial is to get."""

from collections.abc import Sequence
from typing import NamedTuple

from seatrial.conduct.admission import Shape, shapes_of
from seatrial.conduct.policy import Policy
from seatrial.suite.model import Case

ROUNDING = 1e-9


class PlannedShares(NamedTuple):
    """The share of the machine's node-hours of each entry; ``left`` is the share that no entry
    has, and ``fills`` are the entries without a claim of their own, which divide what the others
    leave."""

    shares: list[float]
    left: float
    fills: list[int]


def planned_shares(policy: Policy, widths: Sequence[int], whole: int) -> PlannedShares:
    """Return the planned share of each entry. ``widths`` has what the widest case of each entry
    takes of the ``whole`` machine (0: unknown): of its nodes, or of the cores of a shared node.
    Claims of more than the machine are scaled down to it."""
    entries = policy.entries
    unit = max(whole, 1)
    claims = [
        max(0.0, entry.weight or entry.copies * width / unit)
        for entry, width in zip(entries, widths, strict=True)
    ]
    total = sum(claims)
    fills = [number for number, claim in enumerate(claims) if not claim]
    if total > 1 or (total and not fills and not whole):
        return PlannedShares([claim / total for claim in claims], 0.0, fills)
    left = 1 - total if total < 1 - ROUNDING else 0.0
    for number in fills:
        claims[number] = left / len(fills)
    return PlannedShares(claims, 0.0 if fills else left, fills)


def planned_for(cases: Sequence[Case], policy: Policy, room: int) -> PlannedShares:
    """Return the planned shares for the cases of a trial. ``room`` is the cores of a host whose
    cores runs share, 0 where there is none."""
    widths = widest_of(shapes_of(cases, policy, room), len(policy.entries))
    return planned_shares(policy, widths, room or policy.nodes)


def widest_of(shapes: Sequence[Shape], entries: int) -> list[int]:
    """Return the width of the widest case of each of so many entries, 1 where it has none."""
    widths = [1] * entries
    for shape in shapes:
        widths[shape.entry] = max(widths[shape.entry], shape.width)
    return widths
