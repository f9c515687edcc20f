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
from seatrial.show.page import Cell, Column, Table
from seatrial.show.report.content import bounded

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
    of_nodes: dict[tuple[str, str], dict[str, None]] = {}
    of_chains: dict[tuple[str, str, str], dict[str, None]] = {}
    for each in facts:
        host, chain = each.get("host", ""), each.get("toolchain", "")
        for name, text in each.items():
            if name in _OF_TOOLCHAIN:
                of_chains.setdefault((chain, name, text), {})[host] = None
            elif name not in _ABOUT_RUN:
                of_nodes.setdefault((name, text), {})[host] = None
    names = list(dict.fromkeys(name for name, _ in of_nodes))
    rows: list[list[Cell]] = [
        [_NAMES.get(name, name), text, _nodes(hosts)]
        for name, text, hosts in sorted(
            ((name, text, hosts) for (name, text), hosts in of_nodes.items()),
            key=lambda row: names.index(row[0]),
        )
    ]
    chains: list[list[Cell]] = [
        [chain, _OF_TOOLCHAIN[name], text, _nodes(hosts)]
        for (chain, name, text), hosts in sorted(of_chains.items())
    ]
    about = "As the jobs of the trials found the nodes that they ran on"
    made = [
        bounded(
            "Machine as found",
            [Column("what"), Column("as found"), Column("on")],
            rows,
            about,
            MAX_ROWS,
        ),
        bounded(
            "Compilers and MPI as found",
            [Column("toolchain"), Column("what"), Column("version"), Column("on")],
            chains,
            "What the toolchains that ran say of their versions, in jobs and in builds",
            MAX_ROWS,
        ),
    ]
    return [table for table in made if table.rows]


def _nodes(hosts: Iterable[str]) -> str:
    return fold(sorted(plain_line(host) for host in hosts if host))
