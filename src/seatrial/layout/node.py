"""The cores of a node in hwloc's logical order, each with its socket, NUMA domain and CPUs.

    layout = plain(cores=24, sockets=2, numa_domains=4)
    layout.domains[1]              # [6, 7, 8, 9, 10, 11], by number of the core
    written(layout)                # [["0-5", "6-11"], ["12-17", "18-23"]], a text a domain

A CPU is a hardware thread, by its number of the operating system. A text of a domain lists its
cores: ``0-5`` are six cores of one CPU each, ``0-5+24-29`` six cores of two: 0 and 24, 1 and 25.
"""

import functools
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import groupby
from typing import NamedTuple

from msgspec import Struct

from seatrial.lazy import regex

MAX_CPUS = 16_384

_CPUS = regex(r"(\d{1,6})(?:-(\d{1,6}))?")


class Core(NamedTuple):
    """A core: the socket and the NUMA domain that it is in, and its CPUs."""

    socket: int
    domain: int
    cpus: tuple[int, ...]


class NodeLayout(Struct, frozen=True, dict=True):
    """The cores of a node. ``numbered``: True if the numbers of the CPUs are known. They are not
    where only the numbers of cores, sockets and domains are."""

    cores: tuple[Core, ...]
    numbered: bool = True

    @cached_property
    def domains(self) -> dict[int, list[int]]:
        """The cores of each NUMA domain."""
        return self._grouped([core.domain for core in self.cores])

    @cached_property
    def sockets(self) -> dict[int, list[int]]:
        """The cores of each socket."""
        return self._grouped([core.socket for core in self.cores])

    def _grouped(self, groups: Sequence[int]) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for number, group in enumerate(groups):
            found.setdefault(group, []).append(number)
        return found

    @property
    def threads_per_core(self) -> int:
        return min(len(core.cpus) for core in self.cores)

    @property
    def cores_per_numa(self) -> int:
        """The cores of the smallest domain."""
        return min(map(len, self.domains.values()))

    @property
    def cores_per_socket(self) -> int:
        return min(map(len, self.sockets.values()))

    def cpus_of(self, cores: Iterable[int]) -> list[int]:
        """Return the CPUs of cores, ascending."""
        return sorted(cpu for core in cores for cpu in self.cores[core].cpus)


@functools.lru_cache(maxsize=64)
def plain(cores: int, sockets: int, numa_domains: int, threads_per_core: int = 1) -> NodeLayout:
    """Return a layout of which only numbers are known. Cores are dealt out as evenly as they can
    be, in their order. The numbers of CPUs are as Linux mostly gives them, and not known."""
    return NodeLayout(
        tuple(
            Core(
                socket=core * min(sockets, cores) // cores,
                domain=core * min(numa_domains, cores) // cores,
                cpus=tuple(core + cores * thread for thread in range(threads_per_core)),
            )
            for core in range(cores)
        ),
        numbered=False,
    )


# ---- texts of CPUs ------------------------------------------------------------------------


def spans(numbers: Iterable[int]) -> str:
    """Return numbers, ascending, as a list of spans such as ``0-2,6``."""
    texts = []
    for _, row in groupby(enumerate(sorted(numbers)), lambda pair: pair[1] - pair[0]):
        found = [number for _, number in row]
        texts.append(str(found[0]) if len(found) == 1 else f"{found[0]}-{found[-1]}")
    return ",".join(texts)


def mask(cpus: Iterable[int]) -> str:
    """Return CPUs as a hexadecimal mask such as ``0x1c0``."""
    return hex(sum(1 << cpu for cpu in cpus))


def written(layout: NodeLayout) -> list[list[str]]:
    """Return a layout as texts, which ``from_sockets`` reads: a list of each socket, a text of each
    of its NUMA domains. Raises ValueError where a domain is in several sockets."""
    found: list[list[str]] = []
    for _, cores in groupby(layout.cores, lambda core: core.socket):
        found.append([])
        for _, members in groupby(cores, lambda core: core.domain):
            found[-1].append(_written_cores([core.cpus for core in members]))
    if sum(map(len, found)) != len(layout.domains):
        raise ValueError("a NUMA domain has cores of several sockets")
    return found


def _written_cores(cores: Sequence[tuple[int, ...]]) -> str:
    """Return cores as text: spans of cores whose CPUs all go up by one."""
    texts = []
    keyed = enumerate(cores)
    for _, row in groupby(keyed, lambda each: tuple(cpu - each[0] for cpu in each[1])):
        span = [cpus for _, cpus in row]
        columns = zip(*span, strict=True)
        texts.append("+".join(spans(column) for column in columns))
    return ",".join(texts)


def from_sockets(sockets: Sequence[Sequence[str]]) -> NodeLayout:
    """Return the layout of texts: a list of each socket, a text of each of its NUMA domains. Raises
    ValueError with the text and the remedy."""
    cores: list[Core] = []
    domain = 0
    for socket, domains in enumerate(sockets):
        if not domains:
            raise ValueError("a socket has no NUMA domain; list its CPUs, e.g. 0-5")
        for text in domains:
            cores += [Core(socket, domain, cpus) for cpus in _read_cores(text)]
            domain += 1
    return checked(cores)


def _read_cores(text: str) -> list[tuple[int, ...]]:
    found: list[tuple[int, ...]] = []
    for part in text.split(","):
        columns = [_read_span(span.strip(), text) for span in part.split("+")]
        if len({len(column) for column in columns}) > 1:
            raise ValueError(f"{part!r} joins spans of unequal length; write e.g. 0-5+24-29")
        found += zip(*columns, strict=True)
    return found


def _read_span(span: str, text: str) -> range:
    match = _CPUS.fullmatch(span)
    if match is None:
        raise ValueError(f"{text!r} is no list of CPUs; write e.g. 0-5, or 0-5+24-29 with SMT")
    first, last = int(match[1]), int(match[2] or match[1])
    if last < first or last - first >= MAX_CPUS:
        raise ValueError(f"{span!r} is no span of CPUs; write the smaller number first, e.g. 0-5")
    return range(first, last + 1)


def checked(cores: Sequence[Core]) -> NodeLayout:
    """Return the layout of these cores, in hwloc's logical order: sockets, their domains and the
    cores of these, each by its lowest CPU. Raises ValueError if there are none, too many, or a CPU
    is in two."""
    cpus = [cpu for core in cores for cpu in core.cpus]
    if not cpus:
        raise ValueError("it has no CPU")
    if len(cpus) > MAX_CPUS:
        raise ValueError(f"it has more than {MAX_CPUS} CPUs")
    if len(set(cpus)) < len(cpus):
        twice = next(cpu for cpu in sorted(cpus) if cpus.count(cpu) > 1)
        raise ValueError(f"CPU {twice} is in it twice")
    by_cpu = sorted(cores, key=lambda core: core.cpus)
    sockets = _numbered(core.socket for core in by_cpu)
    domains = _numbered(core.domain for core in by_cpu)
    ordered = sorted(by_cpu, key=lambda core: (sockets[core.socket], domains[core.domain]))
    domains = _numbered(core.domain for core in ordered)
    return NodeLayout(
        tuple(Core(sockets[c.socket], domains[c.domain], tuple(sorted(c.cpus))) for c in ordered)
    )


def _numbered(names: Iterable[int]) -> dict[int, int]:
    """Return the number from 0 of each name, in the order of appearance."""
    return {name: number for number, name in enumerate(dict.fromkeys(names))}
