"""The machine as its jobs found it: what the first job of each toolchain told of its node.

facts = []
status(record, cases, told(events, facts))     # the events are read once
tables = as_found(facts)
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from seatrial.escaping import plain_line
from seatrial.journal.events import BuildEnded, Event, ScriptStarted
from seatrial.model.node_set import fold
from seatrial.show.page import Table
from seatrial.show.report.content import bounded, columns_of, filled

Facts = dict[str, str]
MAX_ROWS: Final = 200
_OF_TOOLCHAIN: Final = {
    "cc": "C compiler",
    "cxx": "C++ compiler",
    "fc": "Fortran compiler",
    "mpicc": "compiler of the MPI",
    "mpi": "MPI",
    "spack": "package of Spack",
    "easybuild": "module of EasyBuild",
    "launcher": "launcher",
}
_NAMES: Final = {
    "os": "operating system",
    "cpu": "CPU",
    "processors": "processors (logical)",
    "gpus": "GPUs",
    "gpu driver": "GPU driver",
    "slurm": "Slurm",
}
_ABOUT_RUN: Final = ("host", "toolchain")


def told(events: Iterable[Event], facts: list[Facts]) -> Iterator[Event]:
    """Yield the events; append what jobs told of their nodes, and builds of their compilers."""
    for event in events:
        if isinstance(event, ScriptStarted | BuildEnded) and event.facts:
            facts.append(event.facts)
        yield event


def as_found(facts: Sequence[Facts]) -> list[Table]:
    """Return the tables of nodes and of toolchains as jobs found them, those that have rows."""
    of_nodes: dict[str, dict[str, set[str]]] = {}  # hosts by name and text
    of_chains: dict[tuple[str, str, str], set[str]] = {}
    for each in facts:
        host, chain = each.get("host", ""), each.get("toolchain", "")
        for name, text in each.items():
            if name in _OF_TOOLCHAIN:
                of_chains.setdefault((chain, name, text), set()).add(host)
            elif name not in _ABOUT_RUN:
                of_nodes.setdefault(name, {}).setdefault(text, set()).add(host)
    rows = [
        [_NAMES.get(name, name), text, _nodes(hosts)]
        for name, texts in of_nodes.items()
        for text, hosts in texts.items()
    ]
    chains = [
        [chain, _OF_TOOLCHAIN[name], text, _nodes(hosts)]
        for (chain, name, text), hosts in sorted(of_chains.items())
    ]
    about = "As the jobs of the trials found the nodes that they ran on"
    about_chains = "What the toolchains that ran say of their versions, in jobs and in builds"
    columns = columns_of("toolchain", "what", "version", "on")
    return filled(
        bounded("Machine as found", columns_of("what", "as found", "on"), rows, about, MAX_ROWS),
        bounded("Compilers and MPI as found", columns, chains, about_chains, MAX_ROWS),
    )


def _nodes(hosts: Iterable[str]) -> str:
    return fold(sorted(plain_line(host) for host in hosts if host))
