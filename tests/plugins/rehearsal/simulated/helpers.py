"""Small machines, and a run of jobs on the simulated cluster to the end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from seatrial.execute.backends import Started
from seatrial.model.file_model import typed
from seatrial.model.machine import FileSystem, Machine, NodeGroup
from seatrial.model.node_set import unfold
from seatrial.model.policy import Window
from seatrial.plugins.rehearsal.cluster import SimulatedCluster, SimulatedUpdate
from seatrial.plugins.rehearsal.keys import MachineModel
from seatrial.plugins.rehearsal.queue import FinishedJob, SimulatedJob

S = 1_000_000_000
START = 1_700_000_000 * S
AT_ONCE = {"submit_delay": 0, "start_delay": 0, "poll": 0}


def machine(
    nodes: int, file_systems: Mapping[str, FileSystem] | None = None, **model: Any
) -> Machine:
    described: dict[str, Any] = {"rehearsal": typed({**AT_ONCE, **model}, MachineModel)}
    return Machine(
        machine="sim",
        nodes=[NodeGroup(names=f"n[001-{nodes:03}]", cores=4)],
        scheduler="slurm",
        file_systems=dict(file_systems or {}),
        **described,
    )


def cluster(
    described: Machine, seed: int = 1, outages: Sequence[Window] = (), horizon_s: float = 1e6
) -> SimulatedCluster:
    nodes = unfold(described.nodes[0].names)
    return SimulatedCluster(described, nodes, seed, START, outages, horizon_s)


def to_the_end(
    simulated: SimulatedCluster, jobs: Iterable[tuple[float, SimulatedJob]] = ()
) -> list[tuple[float, SimulatedUpdate]]:
    """Submit each job at its time; all updates with theirs. Times are seconds from the start."""
    told: list[tuple[int, SimulatedUpdate]] = []
    for seconds, job in sorted(jobs, key=lambda pair: pair[0]):
        now = START + round(seconds * S)
        while (following := simulated.next_time()) is not None and following < now:
            told += simulated.advance(following)
        simulated.submit(now, [job])
    while (following := simulated.next_time()) is not None:
        told += simulated.advance(following)
    return [((time - START) / S, update) for time, update in told]


def free_nodes(simulated: SimulatedCluster) -> int:
    return sum(queue.free.bit_count() for queue in simulated._queues)


def starts(told: Iterable[tuple[float, SimulatedUpdate]]) -> dict[str, float]:
    return {update.run_id: time for time, update in told if isinstance(update, Started)}


def ends(told: Iterable[tuple[float, SimulatedUpdate]]) -> dict[str, tuple[float, FinishedJob]]:
    return {
        update.run_id: (time, update) for time, update in told if isinstance(update, FinishedJob)
    }


def placed(told: Iterable[tuple[float, SimulatedUpdate]]) -> dict[str, set[str]]:
    return {
        update.run_id: set(unfold(update.nodes))
        for _, update in told
        if isinstance(update, Started)
    }
