"""Where the ranks of a run were, for its page: what its check ``placement`` read."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from seatrial import draw
from seatrial.draw.node_cores import MAX_CPUS, MAX_NODES
from seatrial.layout.node import spans
from seatrial.show.formatting import NARROW, WIDE
from seatrial.store.rows import RunRow
from seatrial.suite.model import Test
from seatrial.suite.proving import PLACEMENT_FILE
from seatrial.verify.placement import ThreadPlace
from seatrial.verify.placement_check import given_in, places_in
from seatrial.web.output.run_files import FileMissing, head

MAX_READ = 1 << 20


class CpuOfNode(Struct, frozen=True):
    """A CPU of a node: its number, its NUMA domain (None: not known), the ranks that were on it, or
    may have been where their program does not tell, and the number of their threads."""

    cpu: int
    numa: int | None
    ranks: str
    threads: int


class NodePlacement(Struct, frozen=True):
    """A node and those of its CPUs that the job was given or used."""

    node: str
    cpus: list[CpuOfNode]


class RunPlacement(Struct, frozen=True, kw_only=True):
    """Where threads were, by the lines of a file. ``known`` is False if the file tells only where
    they may be. ``left_out``: nodes beyond those in ``nodes``."""

    file: str
    nodes: list[NodePlacement]
    left_out: int
    ranks: int
    threads: int
    known: bool

    def picture(self, wide: bool) -> Any:
        """Return the nodes with ranks on their CPUs, as SVG."""
        nodes = [draw.NodeCores(each.node, list(_domains(each))) for each in self.nodes]
        return draw.node_cores(
            nodes,
            title="Ranks on the CPUs of each node",
            about="A box for each CPU, with its number and the ranks whose threads were there",
            width=WIDE if wide else NARROW,
        )


def placement_of(run: RunRow, test: Test | None) -> RunPlacement | None:
    """Return where the threads of a run were; None if its test does not check it, or its file is
    not there or not whole."""
    checks = [check for check in test.verify if check.placement] if test else []
    if not checks:
        return None
    name = checks[0].in_file
    found, told = head(run, name, MAX_READ), head(run, PLACEMENT_FILE, MAX_READ)
    if isinstance(found, FileMissing) or found.size > MAX_READ:
        return None
    try:
        places = places_in(found.text)
    except ValueError:
        return None
    given = None if isinstance(told, FileMissing) else given_in(told.text)
    by_node: dict[str, list[ThreadPlace]] = defaultdict(list)
    for place in places:
        by_node[place.node].append(place)
    nodes = [
        NodePlacement(node, _cpus(own, given.cpus if given and given.node == node else frozenset()))
        for node, own in [*by_node.items()][:MAX_NODES]
    ]
    return RunPlacement(
        file=name,
        nodes=nodes,
        left_out=max(0, len(by_node) - MAX_NODES),
        ranks=len({place.rank for place in places}),
        threads=len(places),
        known=all(place.cpu is not None for place in places),
    )


def _cpus(places: list[ThreadPlace], given: frozenset[int]) -> list[CpuOfNode]:
    ranks: dict[int, list[int]] = defaultdict(list)
    numa: dict[int, int | None] = {}
    for place in places:
        for cpu in place.allowed or () if place.cpu is None else (place.cpu,):
            ranks[cpu].append(place.rank)
            numa[cpu] = place.numa
    everything = given.union(ranks, *(place.allowed or () for place in places))
    return [
        CpuOfNode(cpu, numa.get(cpu), spans(set(ranks[cpu])), len(ranks[cpu]))
        for cpu in sorted(everything)[:MAX_CPUS]
    ]


def _domains(node: NodePlacement) -> Iterator[draw.CpuDomain]:
    """Yield the CPUs of a node, apart by NUMA domain if that of each is known."""
    known = {cpu.numa for cpu in node.cpus}
    if None in known or len(known) < 2:
        known = {None}
    for numa in sorted(known, key=lambda each: each or 0):
        own = [cpu for cpu in node.cpus if numa is None or cpu.numa == numa]
        uses = [draw.CpuUse(cpu.cpu, cpu.ranks, cpu.threads) for cpu in own]
        yield draw.CpuDomain("" if numa is None else f"NUMA domain {numa}", uses)
