"""The nodes of placed runs of a trial, chosen by the conductor (``run.place``).

placer = NodePlacer(policy.placing, cases)
choice = placer.choose(case, taken, seed)    # beside nodes that are taken, down or excluded
"""

from collections.abc import Collection, Mapping, Sequence

from seatrial.model.machine import Machine
from seatrial.model.machine_topology import topology_of
from seatrial.model.node_set import fold, unfold
from seatrial.model.policy import NodePlacing
from seatrial.model.requirements import usable_nodes
from seatrial.model.test import Case, Test
from seatrial.model.topology import NodeChoice, choose_nodes


def placing_of(
    machine: Machine, tests: Mapping[str, Test], cases: Sequence[Case]
) -> NodePlacing | None:
    """Return the placing of a trial; None if no case is placed."""
    if all(case.place is None for case in cases):
        return None
    topology = topology_of(machine)
    assert topology is not None  # such cases are left out
    sets: dict[str, int] = {}
    numbers = []
    for case in cases:
        usable = (
            fold(usable_nodes(machine, tests[case.test].requires.features, case))
            if case.place
            else ""
        )
        numbers.append(sets.setdefault(usable, len(sets) + 1) if case.place else 0)
    return NodePlacing(topology=topology, sets=list(sets), set_of=numbers)


class NodePlacer:
    """Chooses the nodes of placed runs of a trial."""

    def __init__(self, placing: NodePlacing, cases: Sequence[Case]) -> None:
        self._topology = placing.topology
        self._cases = cases
        numbers = placing.topology.number_of
        sets = [
            frozenset(numbers[n] for n in unfold(each) if n in numbers) for each in placing.sets
        ]
        self._usable = [sets[number - 1] if number else frozenset() for number in placing.set_of]

    def is_placed(self, case: int) -> bool:
        return self._cases[case].place is not None

    def choose(self, case: int, taken: Collection[str], seed: str) -> NodeChoice:
        """Return nodes for a run of a case beside those that are taken or cannot be used."""
        wish = self._cases[case].place
        assert wish is not None
        number_of = self._topology.number_of
        lost = {number_of[name] for name in taken if name in number_of}
        number, usable = self._cases[case].nodes, self._usable[case]
        return choose_nodes(self._topology, usable - lost, wish, number, seed, usable)

    def names(self, choice: NodeChoice) -> str:
        """Return the names of chosen nodes, with commas, in their order."""
        return ",".join(self._topology.nodes[node] for node in choice.nodes)
