"""Sets of nodes in ClusterShell's notation.

    unfold("n[001-128],login1")     # ("n001", ..., "login1")
    fold(["n001", "n002"])          # n[001-002]

In the shapes of files they are ``NodeSet``, texts whose faults are found where they stand.
"""

import functools
import re
from collections.abc import Collection, Iterable, Iterator
from itertools import groupby
from typing import Annotated

from seatrial.lazy import nodeset
from seatrial.model.file_model import checked

MAX_NODES = 100_000

_NODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_FOLDED = re.compile(r"(?:[^,\[]|\[[^\]]*\])+")
_GROUP = re.compile(r"\[([^\]]*)\]")
_SPAN = re.compile(r"([0-9]+)-([0-9]+)")
_ROWS = re.compile(
    r"([A-Za-z](?:[A-Za-z0-9._-]*[A-Za-z._-])?)"
    r"\[([0-9]+(?:-[0-9]+)?(?:,[0-9]+(?:-[0-9]+)?)*)\]"
)


@functools.lru_cache(maxsize=256)
def unfold(names: str) -> tuple[str, ...]:
    """Return the names of a node set such as ``n[001-128],login1``. Raises ValueError."""
    if "[" not in names and "," not in names:
        nodes: tuple[str, ...] = (names,)  # a machine of one node: no need to load the library
    elif _at_most(names) > MAX_NODES:
        raise ValueError(f"{names!r} is more than {MAX_NODES} nodes; write e.g. n[001-128]")
    elif (rows := _ROWS.fullmatch(names)) and (numbers := _numbers(rows[2])):
        return tuple([rows[1] + number for number in numbers])
    else:
        try:
            nodes = tuple(nodeset.NodeSet(names, resolver=None))
        except nodeset.NodeSetException as error:
            message = f"{names!r} is not a node set: {error}; write e.g. n[001-128]"
            raise ValueError(message) from error
    for name in nodes or ("",):
        if not _NODE.fullmatch(name):
            raise ValueError(f"{names!r} is not a node set: a name {name!r}; write e.g. n[001-128]")
    return nodes


def _numbers(spans: str) -> list[str]:
    """Return the numbers of spans such as ``001-128,200``; none if they differ in width or do not
    ascend, which ClusterShell knows how to read."""
    numbers: list[str] = []
    width = len(spans.partition(",")[0].partition("-")[0])
    for span in spans.split(","):
        first, _, last = span.partition("-")
        last = last or first
        if len(first) != width or len(last) != width or last < first or numbers[-1:] >= [first]:
            return []
        numbers += [f"{number:0{width}}" for number in range(int(first), int(last) + 1)]
    return numbers


def unfold_or_empty(names: str) -> tuple[str, ...]:
    """Return the names of a node set that a scheduler or a job wrote; none if it is empty or
    malformed."""
    try:
        return unfold(names) if names else ()
    except ValueError:
        return ()


def fold(names: Collection[str]) -> str:
    """Return the node set of these names, such as ``n[001-128],login1``; "" if there are none."""
    if not names:
        return ""
    if len(names) == 1:
        return next(iter(names))
    sets: list[str] = []  # ClusterShell reads n[1,2,3] eight times as fast as n1,n2,n3
    numbers: dict[str, list[str]] = {}
    for name in sorted(set(names)):
        stem = name.rstrip("0123456789")
        if stem == name:
            sets.append(name)
        else:
            numbers.setdefault(stem, []).append(name[len(stem) :])
    if not sets and len(numbers) == 1:
        ((stem, digits),) = numbers.items()
        if len(set(map(len, digits))) == 1:  # then ClusterShell, which takes a while, is not needed
            return f"{stem}[{','.join(_spans(digits))}]"
    sets += [f"{stem}[{','.join(each)}]" for stem, each in numbers.items()]
    return str(nodeset.NodeSet(",".join(sets), resolver=None))


def _spans(numbers: Iterable[str]) -> Iterator[str]:
    """Yield the spans of ascending numbers of one width: ``001-128``, ``200``."""
    for _, row in groupby(enumerate(numbers), lambda each: int(each[1]) - each[0]):
        span = [number for _, number in row]
        yield span[0] if len(span) == 1 else f"{span[0]}-{span[-1]}"


def _at_most(names: str) -> int:
    """Return an upper bound of the names in a node set, before ClusterShell writes them all out."""
    total = 0
    for folded in _FOLDED.findall(names):
        count = 1
        for group in _GROUP.findall(folded):
            spans = [int(last) - int(first) + 1 for first, last in _SPAN.findall(group)]
            count *= max(1, sum(spans) + group.count(","))
        total += count
    return total


def not_among(nodes: str, named: Collection[str]) -> list[str]:
    """Return the nodes of a run, folded, that are not among those that were told of. These may have
    a domain behind their names. None are missing if no name is among them, and as many are told of:
    a site may have two names for each node."""
    short = {name.partition(".")[0] for name in named}
    names = unfold_or_empty(nodes)
    missing = [node for node in names if node.partition(".")[0] not in short]
    return [] if len(missing) == len(names) <= len(short) else missing


NodeSet = Annotated[str, checked(unfold)]
NodeSetOrNone = Annotated[str, checked(lambda names: names and unfold(names))]
