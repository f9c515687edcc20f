"""A machine's nodes: their facts for expressions, and the layout of their cores.

    layout = plain(cores=24, sockets=2, numa_domains=4)
    layout.domains[1]              # [6, 7, 8, 9, 10, 11], by number of the core
    written(layout)                # [["0-5", "6-11"], ["12-17", "18-23"]], a text a domain

A layout has the cores of a node in hwloc's logical order, each with its socket, NUMA domain and
CPUs. A CPU is a hardware thread, by its number of the operating system. A text of a domain lists
its cores: ``0-5`` are six cores of one CPU each, ``0-5+24-29`` six cores of two: 0 and 24, 1 and
25.
"""

import functools
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, groupby
from typing import Any, NamedTuple, TypeVar
from xml.etree import ElementTree

from msgspec import Struct
from msgspec.structs import replace

from seatrial.files import read_regular
from seatrial.model.documents import Location
from seatrial.model.machine import Machine, NodeGroup, WrittenLayout
from seatrial.model.node_set import unfold, unfold_or_empty

MAX_CPUS = 16_384

T = TypeVar("T")

_CPUS = r"(\d{1,6})(?:-(\d{1,6}))?"


class Core(NamedTuple):
    """A core: the socket and the NUMA domain that it is in, and its CPUs."""

    socket: int
    domain: int
    cpus: tuple[int, ...]


Part = tuple[int, int]  # a socket and a NUMA domain


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

    @cached_property
    def parts(self) -> dict[Part, list[int]]:
        """The cores of each part of a NUMA domain that is in one socket: mostly all of it."""
        return self._grouped([(core.socket, core.domain) for core in self.cores])

    def _grouped(self, groups: Sequence[T]) -> dict[T, list[int]]:
        grouped: dict[T, list[int]] = {}
        for number, group in enumerate(groups):
            grouped.setdefault(group, []).append(number)
        return grouped

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
        span = [number for _, number in row]
        texts.append(str(span[0]) if len(span) == 1 else f"{span[0]}-{span[-1]}")
    return ",".join(texts)


def mask(cpus: Iterable[int]) -> str:
    """Return CPUs as a hexadecimal mask such as ``0x1c0``."""
    return hex(sum(1 << cpu for cpu in cpus))


def written(layout: NodeLayout) -> list[list[str]]:
    """Return the cores of a layout as texts: a list of each socket, a text of each part of a NUMA
    domain that is in it. With ``written_domains``, ``from_sockets`` reads them."""
    texts: dict[int, list[str]] = {}
    for (socket, _), cores in layout.parts.items():
        cpus = [layout.cores[core].cpus for core in cores]
        texts.setdefault(socket, []).append(_written_cores(cpus))
    return [*texts.values()]


def written_domains(layout: NodeLayout) -> list[str]:
    """Return the CPUs of each NUMA domain as a text, where a domain is in several sockets; else
    none, as the texts of the sockets then tell the domains."""
    if len(layout.parts) == len(layout.domains):
        return []
    return [spans(layout.cpus_of(cores)) for cores in layout.domains.values()]


def _written_cores(cores: Sequence[tuple[int, ...]]) -> str:
    """Return cores as text: spans of cores whose CPUs all go up by one."""
    texts = []
    keyed = enumerate(cores)
    for _, row in groupby(keyed, lambda each: tuple(cpu - each[0] for cpu in each[1])):
        span = [cpus for _, cpus in row]
        columns = zip(*span, strict=True)
        texts.append("+".join(spans(column) for column in columns))
    return ",".join(texts)


def from_sockets(sockets: Sequence[Sequence[str]], domains: Sequence[str] = ()) -> NodeLayout:
    """Return the layout of texts: a list of each socket, a text of each of its NUMA domains.
    ``domains``: the CPUs of each NUMA domain, where a domain is in several sockets. Raises
    ValueError with the text and the remedy."""
    cores: list[Core] = []
    number = 0
    for socket, texts in enumerate(sockets):
        if not texts:
            raise ValueError("a socket has no NUMA domain; list its CPUs, e.g. 0-5")
        for text in texts:
            cores += [Core(socket, number, cpus) for cpus in _read_cores(text)]
            number += 1
    return checked(_in_domains(cores, domains) if domains else cores)


def _in_domains(cores: Sequence[Core], domains: Sequence[str]) -> list[Core]:
    """Return cores in the domains whose CPUs are given."""
    domain_of = _read_domains(domains)
    for core in cores:
        if len({domain_of.get(cpu, -1) for cpu in core.cpus}) > 1 or core.cpus[0] not in domain_of:
            raise ValueError(f"CPU {core.cpus[0]} and its core must be in one NUMA domain")
    if unknown := domain_of.keys() - {cpu for core in cores for cpu in core.cpus}:
        raise ValueError(f"CPU {min(unknown)} of a NUMA domain is in no socket")
    return [core._replace(domain=domain_of[core.cpus[0]]) for core in cores]


def _read_domains(domains: Sequence[str]) -> dict[int, int]:
    """Return the number of the domain of each CPU."""
    domain_of: dict[int, int] = {}
    for number, text in enumerate(domains):
        for cpu in chain.from_iterable(_read_span(part.strip(), text) for part in text.split(",")):
            if cpu in domain_of:
                raise ValueError(f"CPU {cpu} is in two NUMA domains, or twice in one; remove one")
            domain_of[cpu] = number
    return domain_of


def _read_cores(text: str) -> list[tuple[int, ...]]:
    cores: list[tuple[int, ...]] = []
    for part in text.split(","):
        columns = [_read_span(span.strip(), text) for span in part.split("+")]
        if len({len(column) for column in columns}) > 1:
            raise ValueError(f"{part!r} joins spans of unequal length; write e.g. 0-5+24-29")
        cores += zip(*columns, strict=True)
    return cores


def _read_span(span: str, text: str) -> range:
    match = re.fullmatch(_CPUS, span)
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
    _check_cpus([cpu for core in cores for cpu in core.cpus])
    by_cpu = sorted(cores, key=lambda core: core.cpus)
    sockets = _numbered(core.socket for core in by_cpu)
    domains = _numbered(core.domain for core in by_cpu)
    ordered = sorted(by_cpu, key=lambda core: (sockets[core.socket], domains[core.domain]))
    domains = _numbered(core.domain for core in ordered)
    return NodeLayout(
        tuple(Core(sockets[c.socket], domains[c.domain], tuple(sorted(c.cpus))) for c in ordered)
    )


def _check_cpus(cpus: Sequence[int]) -> None:
    if not cpus:
        raise ValueError("it has no CPU")
    if len(cpus) > MAX_CPUS:
        raise ValueError(f"it has more than {MAX_CPUS} CPUs")
    if len(set(cpus)) < len(cpus):
        twice = next(cpu for cpu in sorted(cpus) if cpus.count(cpu) > 1)
        raise ValueError(f"CPU {twice} is in it twice")


def _numbered(names: Iterable[int]) -> dict[int, int]:
    """Return the number from 0 of each name, in the order of appearance."""
    return {name: number for number, name in enumerate(dict.fromkeys(names))}


# ---- synthetic -----------------------------------------------------------------------------------
#
# The notation of hwloc's synthetic topologies, which ``lstopo --of synthetic`` prints.
#
#     parse("pack:2 numa:2 core:6 pu:1")
#     parse("Package:2 [NUMANode(memory=8GB)] Core:6 PU:2(indexes=2*24:1*2)")
#
# Each word is a kind of object and how many of it are in each object of the word before.
# Attributes in parentheses count only if they are the ``indexes`` of ``pu``: the numbers that the
# operating system gives to CPUs. Without them CPUs are numbered in order.


_WORD = re.compile(r"\s*(\[?)\s*([A-Za-z][A-Za-z0-9]*)?(?::?(\d+))?(\([^()]*\))?\s*(\]?)\s*")
_LOOP = r"(\d+)\*(\d+)"
_KINDS = {
    "pack": "socket",
    "package": "socket",
    "socket": "socket",
    "numa": "numa",
    "numanode": "numa",
    "node": "numa",
    "core": "core",
    "pu": "pu",
    **dict.fromkeys(("machine", "die", "group", "tile", "module", "cluster"), ""),
}
_CACHE = r"l[1-5][diu]?(cache)?|group[0-9]+|memcache|memorysidecache"
_MEMORY = "memory"  # a NUMA domain in brackets, beside the objects that it belongs to
_EXAMPLE = "write e.g. pack:2 numa:2 core:6 pu:1"


class _Level(NamedTuple):
    """A word of the notation: the kind of object, its number in each object above, attributes."""

    kind: str
    number: int
    attributes: str


def parse_synthetic(text: str) -> NodeLayout:
    """Return the layout of a node in hwloc's synthetic notation. Raises ValueError with the word
    and the remedy."""
    levels = _levels(text)
    total = math.prod(level.number for level in levels)
    if total > MAX_CPUS:
        raise ValueError(f"{text!r} has more than {MAX_CPUS} CPUs")
    kinds = [level.kind for level in levels]
    if "pu" not in kinds:
        raise ValueError(f"{text!r} has no pu, the hardware threads of a core; {_EXAMPLE}")
    if kinds.index("pu") != len(kinds) - 1:
        raise ValueError(f"{text!r}: pu must be the last word; {_EXAMPLE}")
    numbers = _numbers(levels[-1].attributes, total)
    per = {
        kind: total // math.prod(level.number for level in levels[: kinds.index(kind) + 1])
        for kind in ("socket", "numa", "core")
        if kind in kinds
    }
    width = per.get("core", 1)
    cores = [
        Core(
            socket=first // per.get("socket", total),
            domain=first // per.get("numa", total),
            cpus=tuple(sorted(numbers[first : first + width])),
        )
        for first in range(0, total, width)
    ]
    return checked(cores)


def _levels(text: str) -> list[_Level]:
    levels: list[_Level] = []
    end = 0
    while end < len(text):
        match = _WORD.match(text, end)
        if match is None or match.end() == end or (match[1] == "[") != (match[5] == "]"):
            raise ValueError(f"{text[end:].strip()!r} is not hwloc's notation; {_EXAMPLE}")
        end = match.end()
        levels.append(_level(match, text))
    _choose_memory(levels)
    for kind in ("socket", "numa", "core", "pu"):
        if sum(level.kind == kind for level in levels) > 1:
            raise ValueError(f"{text!r} has two words for {kind}; {_EXAMPLE}")
    return levels


def _choose_memory(levels: list[_Level]) -> None:
    """Make the deepest of several memories the NUMA domain of a core."""
    memory = [place for place, level in enumerate(levels) if level.kind == _MEMORY]
    for place in memory:
        kind = "numa" if place == memory[-1] else ""
        levels[place] = levels[place]._replace(kind=kind)


def _level(match: re.Match[str], text: str) -> _Level:
    attached, word, number, attributes, _ = match.groups()
    if not word:
        raise ValueError(f"{text!r}: {match[0].strip()!r} has no kind of object; {_EXAMPLE}")
    kind = _KINDS.get(word.lower())
    if kind is None and not re.fullmatch(_CACHE, word.lower()):
        known = "pack, die, numa, group, l3, l2, l1, core, pu"
        raise ValueError(f"{word!r} is not an object of hwloc's notation; there are {known}")
    if attached:  # memory of the objects of the word before, one each
        if kind != "numa":
            raise ValueError(f"{text!r}: only [numa] may be in brackets; {_EXAMPLE}")
        return _Level(_MEMORY, 1, "")
    if number is None or int(number[:6]) < 1:
        raise ValueError(f"{text!r}: {word} has no number above 0; {_EXAMPLE}")
    return _Level(kind or "", int(number[:6]), attributes or "")


def _numbers(attributes: str, total: int) -> list[int]:
    """Return the number of each CPU, in logical order, by the attribute ``indexes`` of pu: a list
    with commas, or loops ``step*count``, as hwloc has them."""
    match = re.search(r"indexes=([^\s)]*)", attributes)
    if match is None:
        return list(range(total))
    text = match[1]
    if re.fullmatch(r"\d{1,6}(,\d{1,6})*", text):
        numbers = [int(number) for number in text.split(",")]
    elif all(re.fullmatch(_LOOP, loop) for loop in text.split(":")):
        numbers = _looped(
            [(int(loop[1]), int(loop[2])) for loop in re.finditer(_LOOP, text)], total
        )
    else:
        raise ValueError(f"indexes={text}: write the numbers of the CPUs in order, e.g. 0,24,1,25")
    if len(numbers) != total:
        raise ValueError(f"indexes={text} are {len(numbers)} numbers; there are {total} CPUs")
    return numbers


def _looped(loops: list[tuple[int, int]], total: int) -> list[int]:
    """Return the numbers of CPUs by loops ``step*count``: CPU i counts (i // step) % count of each,
    the first loop fastest. A last loop of step 1 may be left out."""
    counted = math.prod(number for _, number in loops)
    if not counted or any(step < 1 for step, _ in loops):
        raise ValueError("a loop of indexes has a 0; write e.g. indexes=2*24:1*2")
    if counted != total:
        loops = [*loops, (1, total // counted)]
    numbers = [0] * total
    scale = 1
    for step, length in loops:
        numbers = [n + (place // step % length) * scale for place, n in enumerate(numbers)]
        scale *= length
    return numbers


# ---- hwloc xml -----------------------------------------------------------------------------------
#
# The XML that ``lstopo --of xml`` writes, of hwloc 1 and 2: a node's cores, domains and sockets.
#
# Objects are found by their sets of CPUs, not by their place in the tree, which differs between
# the two versions of hwloc.


_WRITE_AGAIN = "write it again: lstopo --of xml > node.xml"


def parse_hwloc_xml(text: str) -> NodeLayout:
    """Return the layout of the node that an XML of hwloc describes. Raises ValueError with the
    reason."""
    if "<!ENTITY" in text:
        raise ValueError(f"declares entities, which hwloc never does; {_WRITE_AGAIN}")
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise ValueError(f"is not whole XML ({error}); {_WRITE_AGAIN}") from None
    if root.tag != "topology":
        raise ValueError(f"is XML of another kind: <{root.tag}>, not <topology>; {_WRITE_AGAIN}")
    sets: dict[str, list[int]] = {"Core": [], "PU": [], "NUMANode": [], "Package": []}
    for kind, cpus in _objects(root):
        sets.setdefault("Package" if kind == "Socket" else kind, []).append(cpus)
    cores = sets["Core"] or sets["PU"]
    if not cores:
        raise ValueError(f"describes no core and no PU; {_WRITE_AGAIN}")
    socket_of, domain_of = _numbering(sets["Package"]), _numbering(sets["NUMANode"])
    placed = [Core(socket_of(cpus), domain_of(cpus), tuple(_bits(cpus))) for cpus in cores]
    return checked(placed)


def _objects(root: Any) -> Iterator[tuple[str, int]]:
    """Yield the kind and the set of CPUs, as an integer, of each object that has some."""
    for each in root.iter("object"):
        text = each.get("cpuset", "")
        if text and (cpus := _set_of(text)):
            yield each.get("type", ""), cpus


def _set_of(text: str) -> int:
    """Return a set such as ``0x00000001,,0xff000000``: words of 32 bits, the highest first."""
    value = 0
    for word in text.split(","):
        try:
            bits = int(word or "0", 16)
        except ValueError:
            raise ValueError(f"{text[:60]!r} is no set of CPUs; {_WRITE_AGAIN}") from None
        value = value << 32 | bits
    return value


def _bits(cpus: int) -> list[int]:
    return [number for number in range(cpus.bit_length()) if cpus >> number & 1]


def _numbering(groups: list[int]) -> Any:
    """Return a function from a core's CPUs to the number of its group: the smallest of those that
    hold it, as a domain may be part of another; 0 where there is none."""
    distinct = list(dict.fromkeys(groups))

    def number_of(cpus: int) -> int:
        holding = [group for group in distinct if cpus & group == cpus]
        return distinct.index(min(holding, key=int.bit_count)) if holding else 0

    return number_of


# ---- facts for expressions -----------------------------------------------------------------------


class NodeFacts(Struct, frozen=True):
    """The nodes that a test can use: the facts of their first kind, their number, their kinds."""

    names: dict[str, Any]
    available: int
    kinds: tuple[NodeGroup, ...]

    def node_names(self) -> list[str]:
        return [name for kind in self.kinds for name in unfold(kind.names)]


def groups_with(machine: Machine, features: Iterable[str]) -> list[NodeGroup]:
    """Return the groups of nodes that have all of these features."""
    needed = set(features)
    return [kind for kind in machine.nodes if needed <= {*kind.features}]


def facts_of(machine: Machine, usable: Sequence[NodeGroup]) -> NodeFacts:
    """Return the facts of the nodes of these kinds. ``node.*`` describe the first kind; a test for
    mixed nodes names a feature."""
    kind = usable[0] if usable else NodeGroup(names="", cores=1)
    layout = layout_of(kind)
    keys = ("cores", "sockets", "numa_domains", "threads_per_core", "gpus")
    names: dict[str, Any] = {
        **{f"node.{key}": getattr(kind, key) for key in keys},
        "node.cores_per_numa": layout.cores_per_numa,
        "node.cores_per_socket": layout.cores_per_socket,
        "node.memory_gib": kind.memory.bytes / 2**30,
        "machine.name": machine.machine,
        "machine.nodes": sum(len(unfold(each.names)) for each in machine.nodes),
    }
    available = sum(len(unfold(each.names)) for each in usable)
    return NodeFacts(names, available, tuple(usable))


def node_names(machine: Machine) -> list[str]:
    """Return the names of all nodes, in the order of the machine file."""
    return list(dict.fromkeys(name for kind in machine.nodes for name in unfold(kind.names)))


def nodes_besides(machine: Machine, known_nodes: Collection[str]) -> list[str]:
    """Return the nodes of a machine that are not among those that were asked; none where those are
    no nodes of its own, but servers or login nodes."""
    names = node_names(machine)
    known = set(known_nodes)
    left = [name for name in names if name not in known]
    return left if len(left) < len(names) else []


def groups_of(machine: Machine) -> dict[str, str]:
    """Return the group of each node that is in a group."""
    return {node: name for name, folded in machine.groups.items() for node in unfold(folded)}


COMPUTE = "compute"
"""The role of the nodes of a machine that have no other."""


def hosts_by_role(machine: Machine) -> dict[str, list[str]]:
    """Return the nodes and hosts of each role: of `roles`, and of `topology.roles` those that run
    no jobs."""
    members = {role: list(unfold_or_empty(folded)) for role, folded in machine.roles.items()}
    of_jobs = {node for kind in machine.nodes for node in unfold_or_empty(kind.names)}
    for role, folded in machine.topology.roles.items() if machine.topology else ():
        known = members.setdefault(role, [])
        besides = {*known, *of_jobs}
        known += [node for node in unfold_or_empty(folded) if node not in besides]
    return {role: hosts for role, hosts in members.items() if hosts}


def roles_of(machine: Machine) -> dict[str, str]:
    """Return the role of each node and host: the first that names it, else ``COMPUTE``."""
    roles: dict[str, str] = {}
    for role, hosts in hosts_by_role(machine).items():
        for node in hosts:
            roles.setdefault(node, role)
    return {**dict.fromkeys(node_names(machine), COMPUTE), **roles}


def unknown_features(
    machine: Machine, slurm_features: Mapping[str, Collection[str]]
) -> dict[str, str]:
    """Return the features that the machine's file gives to nodes and Slurm does not, each with the
    first node that shows it. Nothing is said about nodes that ``slurm_features`` has not."""
    unknown: dict[str, str] = {}
    for kind in machine.nodes:
        for feature in kind.features:
            nodes = (
                name
                for name in unfold(kind.names)
                if feature not in slurm_features.get(name, (feature,))
            )
            if feature not in unknown and (node := next(nodes, "")):
                unknown[feature] = node
    return unknown


# ---- layouts -------------------------------------------------------------------------------------
#
# The layout of a kind of nodes, as the machine's file says it: ``nodes: [{layout: ...}]``.
#
# A file of hwloc's is read when the machine is loaded and becomes texts in the description, which
# trials keep. Where the file says no layout, one is made of the numbers of cores, sockets and NUMA
# domains; the numbers of its CPUs are then not known.


MAX_LAYOUT_BYTES = 16 << 20
_COUNTS: dict[str, Callable[[NodeLayout], int]] = {
    "cores": lambda layout: len(layout.cores),
    "sockets": lambda layout: len(layout.sockets),
    "numa_domains": lambda layout: len(layout.domains),
    "threads_per_core": lambda layout: layout.threads_per_core,
}


def layout_of(kind: NodeGroup) -> NodeLayout:
    """Return the layout of nodes of a kind that was loaded."""
    if isinstance(kind.layout, str):
        return _of_notation(kind.layout)
    if kind.layout is not None:
        return _of_texts(tuple(map(tuple, kind.layout.sockets)), tuple(kind.layout.domains))
    return plain(kind.cores, kind.sockets, kind.numa_domains, kind.threads_per_core)


_of_notation = functools.lru_cache(maxsize=64)(parse_synthetic)
_of_texts = functools.lru_cache(maxsize=64)(from_sockets)


def as_texts(layout: NodeLayout) -> WrittenLayout:
    """Return a layout as a machine's file can have it."""
    return WrittenLayout(sockets=written(layout), domains=written_domains(layout))


def check_layout(kind: NodeGroup, at: Location) -> None:
    """Add the faults of the layout of a kind of nodes, which is at ``at``."""
    layout = _read(kind.layout, at)
    if layout is None:
        return
    for key, number_in in _COUNTS.items():
        given, number = getattr(kind, key), number_in(layout)
        if given != number and at.given(key):
            text = f"is {given}, but `layout` has {number}; correct one of them"
            at.fault(text, key)


def with_layout(kind: NodeGroup, at: Location) -> NodeGroup:
    """Return a kind of nodes that was checked with the numbers that its layout has, and with the
    texts of a layout that is in a file."""
    layout = _read(kind.layout, at) if kind.layout is not None else None
    if layout is None:
        return kind
    if isinstance(kind.layout, WrittenLayout) and kind.layout.file:
        kind = replace(kind, layout=as_texts(layout))
    return replace(kind, **{key: number_in(layout) for key, number_in in _COUNTS.items()})


def _read(given: str | WrittenLayout | None, at: Location) -> NodeLayout | None:
    """Return what ``layout`` of the nodes at ``at`` says; None, with a fault added, if it cannot be
    read."""
    if isinstance(given, str):
        return at.parsed(_of_notation, given, "layout")
    if given is None or bool(given.file) == bool(given.sockets):
        at.fault("give file or sockets, one of them", "layout")
        return None
    if given.sockets:
        sockets = tuple(map(tuple, given.sockets))
        layout = at.parsed(_of_texts, sockets, "layout", "sockets")
        if layout is None or not given.domains:
            return layout
        spanning = functools.partial(_of_texts, sockets)
        return at.parsed(spanning, tuple(given.domains), "layout", "domains")
    path = at.node.place_of(*at.key, "layout", "file").path.parent / given.file
    try:
        return parse_hwloc_xml(read_regular(path, MAX_LAYOUT_BYTES).decode(errors="replace"))
    except OSError as error:
        at.fault(f"{path}: {error.strerror}", "layout", "file")
    except ValueError as error:
        at.fault(f"{path}: {error}", "layout", "file")
    return None
