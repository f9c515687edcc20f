"""What runs ask of the machine, and the share of it that each test of a sustained trial is to get.

requests = requests_of(cases, policy, cores)
planned_shares(policy, widest_of(requests, len(policy.entries)), policy.nodes).shares
"""

from collections.abc import Sequence
from typing import NamedTuple

from seatrial.model.policy import Policy
from seatrial.model.test import Case
from seatrial.model.topology import NodeWish


class ResourceRequest(NamedTuple):
    """What a run of a case asks for."""

    entry: int
    nodes: int
    #: those that it takes of a shared node, 0 where there is none
    cores: int
    #: the part of the machine that it takes: its cores of a shared node, else its nodes
    width: int
    #: those that it takes of a shared node
    gpus: int = 0
    #: the number of its set of nodes that it cannot run on, in the policy; 0: none
    unfit: int = 0
    #: the number of its wish for a place in the network; 0: none
    wish: int = 0


Requests = Sequence[ResourceRequest]
"""Of the cases of a trial, by their positions."""


def requests_of(
    cases: Sequence[Case], policy: Policy, cores: int, gpus: int = 0
) -> list[ResourceRequest]:
    """Return the request of each case; equal requests are one object. ``cores`` and ``gpus`` are
    those of a shared node, 0 where there is none."""
    alike: dict[ResourceRequest, ResourceRequest] = {}
    requests = []
    sets = policy.unfit_of or [0] * len(cases)
    wishes: dict[NodeWish, int] = {}
    for case, entry, unfit in zip(cases, policy.entry_of, sets, strict=True):
        part = 0
        if cores:
            part = cores if case.exclusive else min(case.tasks_per_node * case.threads, cores)
        taken = gpus and min(case.gpus, gpus)
        wish = wishes.setdefault(case.place, len(wishes) + 1) if case.place else 0
        request = ResourceRequest(entry, case.nodes, part, part or case.nodes, taken, unfit, wish)
        requests.append(alike.setdefault(request, request))
    return requests


def widest_of(requests: Requests, entries: int) -> list[int]:
    """Return the width of the widest case of each of so many entries, 1 where it has none."""
    widths = [1] * entries
    for request in requests:
        widths[request.entry] = max(widths[request.entry], request.width)
    return widths


# ---- shares --------------------------------------------------------------------------------------


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


def planned_for(cases: Sequence[Case], policy: Policy, cores: int) -> PlannedShares:
    """Return the planned shares for the cases of a trial. ``cores`` is the cores of a host whose
    cores runs share, 0 where there is none."""
    widths = widest_of(requests_of(cases, policy, cores), len(policy.entries))
    return planned_shares(policy, widths, cores or policy.nodes)


class ExpectedRuns(NamedTuple):
    """What is expected of an entry: the number of its ``runs`` in flight, 0 where nothing is
    expected; and how many runs its part of the machine holds (``share``), caps aside."""

    runs: int
    share: float


def expected_runs(policy: Policy, widths: Sequence[int], whole: int) -> list[ExpectedRuns]:
    """Return what is expected of each entry: its copies, or as many runs as its part of the machine
    holds and one at least, but no more than its cap. ``widths`` has what the widest case of each
    entry takes of the ``whole`` machine: of its nodes, or of the cores of a shared node."""
    entries = policy.entries
    if policy.kind != "sustained":
        return [ExpectedRuns(0, 0.0)] * len(entries)
    planned = planned_shares(policy, widths, whole)
    expected = []
    for entry, width, part in zip(entries, widths, planned.shares, strict=True):
        share = part * whole / max(width, 1)
        runs = entry.copies
        if not runs and share > 0:
            runs = max(1, int(share + 1e-9))
        expected.append(ExpectedRuns(min(runs, entry.most or runs), share))
    return expected
