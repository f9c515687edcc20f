"""xthi of Cray, HPE, NERSC and ARCHER2: the CPUs that each thread of each rank may use.

Hello from rank 0, thread 0, on nid00012. (core affinity = 0-3,64-67)

Node    0, hostname nid001003, mpi   2, omp   1, executable xthi_mpi_mp
MPI summary: 2 ranks
Node    0, rank    0, thread   0, (affinity = 0-15)
Node    0, rank    1, thread   0, (cpu  17, set 16-31)

The CPU that the last line tells is that of one moment, and not taken.
"""

import re
from collections.abc import Sequence

from seatrial.judge.formats import end_whole, whole
from seatrial.judge.placement import ThreadPlace, cpus_of, figures_of
from seatrial.model.figures import MetricValue

_N = r"([0-9]{1,9})"
_CPUS = r"([0-9,-]+)"
_HELLO = re.compile(
    rf"Hello from rank {_N},(?: thread {_N},)? on (\S{{1,255}})\. \(core affinity = {_CPUS}\).*"
)
_HOST = re.compile(rf"Node +{_N}, hostname (\S{{1,255}}), .*")
_RANK = re.compile(
    rf"Node +{_N}, rank +{_N}, thread +{_N}, "
    rf"\((?:cpu *=? *[0-9]{{1,9}}, *)?(?:affinity|set) *=? *{_CPUS}\).*"
)
_RANKS = re.compile(rf"MPI summary: {_N} ranks.*")


def places(text: str) -> list[ThreadPlace]:
    """Return the place of each thread. Raises ValueError with the reason if a line is damaged."""
    threads: list[ThreadPlace] = []
    hosts: dict[str, str] = {}  # of the numbers of nodes
    ranks = 0  # as ARCHER2's tells
    for line in text.split("\n"):
        if line.startswith("Hello from rank "):
            rank, thread, node, cpus = whole(_HELLO, line).groups()
            threads.append(ThreadPlace(int(rank), int(thread or 0), node, cpus_of(cpus)))
        elif match := _HOST.fullmatch(line):
            hosts[match[1]] = match[2]
        elif match := _RANKS.fullmatch(line):
            ranks += int(match[1])
        elif line.startswith("Node ") and "rank" in line:
            number, rank, thread, cpus = whole(_RANK, line).groups()
            if number not in hosts:
                raise ValueError(f"its line of the host name of node {number} is missing")
            threads.append(ThreadPlace(int(rank), int(thread), hosts[number], cpus_of(cpus)))
    if threads:
        end_whole(text)
    _require_all(ranks, threads)
    return threads


def _require_all(ranks: int, threads: Sequence[ThreadPlace]) -> None:
    """Raise ValueError if there are fewer ranks than the output tells of."""
    if ranks > len({place.rank for place in threads}):
        raise ValueError(f"it tells of {ranks} ranks, and has not the lines of all")


def parse(text: str) -> list[MetricValue]:
    """Return for each thread the number of CPUs that it may use, labelled with its place. Raises
    ValueError with the reason if a line is damaged, or no thread has one."""
    threads = places(text)
    if not threads:
        raise ValueError("no line tells where a thread may run")
    return figures_of(threads)
