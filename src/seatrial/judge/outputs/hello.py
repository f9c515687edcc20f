"""The probe hello of suites/probes: where each thread of each rank is.

rank 0 of 4 thread 0 of 2 node n001 cpu 0 core 0,4 numa 0 mask 0-1
hello finished
"""

import re

from seatrial.judge.formats import once, whole
from seatrial.judge.placement import ThreadPlace, cpus_of, figures_of
from seatrial.model.figures import MetricValue, number

LINE = "rank "  # how the line of a thread begins, and no other
_LAST = "hello finished"
_N = r"([0-9]{1,9})"
_PLACE = re.compile(
    rf"rank {_N} of {_N} thread {_N} of {_N} node (\S{{1,255}}) cpu {_N}(?: core (\S+))? "
    rf"numa {_N} mask (\S+)"
)

_INIT = re.compile(r"^init min \S+ median \S+ max (\S+) s$", re.MULTILINE)


def places(text: str) -> list[ThreadPlace]:
    """Return the place of each thread. Raises ValueError with the reason if a line is damaged, or
    the last one is missing. Older lines tell no core."""
    lines = text.split("\n")
    threads = [_place(line) for line in lines if line.startswith(LINE)]
    if _LAST not in lines:
        raise ValueError(f"its closing line {_LAST!r} is missing")
    return threads


def _place(line: str) -> ThreadPlace:
    match = whole(_PLACE, line)
    rank, _, thread, _, node, cpu, core, numa, mask = match.groups()
    allowed = None if mask.endswith("...") else cpus_of(mask)  # hello cuts a long mask
    core_cpus = cpus_of(core) if core else None
    return ThreadPlace(int(rank), int(thread), node, allowed, int(cpu), core_cpus, int(numa))


def parse(text: str) -> list[MetricValue]:
    """Return for each thread the number of CPUs that it may use, labelled with its place, and the
    longest time of MPI_Init. Raises ValueError with the reason if the output is not whole."""
    init = number(once(_INIT, text, "line of init")[1])
    return [*figures_of(places(text)), MetricValue("init", init, "s", "lower")]
