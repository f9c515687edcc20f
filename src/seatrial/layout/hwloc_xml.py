"""The XML that ``lstopo --of xml`` writes, of hwloc 1 and 2: a node's cores, domains and sockets.

Objects are found by their sets of CPUs, not by their place in the tree, which differs between the
two versions of hwloc.
"""

from collections.abc import Iterator
from typing import Any

from seatrial.layout.node import Core, NodeLayout, checked
from seatrial.lazy import ElementTree

_WRITE_AGAIN = "write it again: lstopo --of xml > node.xml"


def parse(text: str) -> NodeLayout:
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
    found = [Core(socket_of(cpus), domain_of(cpus), tuple(_bits(cpus))) for cpus in cores]
    return checked(found)


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
