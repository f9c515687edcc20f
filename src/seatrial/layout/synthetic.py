"""The notation of hwloc's synthetic topologies, which ``lstopo --of synthetic`` prints.

    parse("pack:2 numa:2 core:6 pu:1")
    parse("Package:2 [NUMANode(memory=8GB)] Core:6 PU:2(indexes=2*24:1*2)")

Each word is a kind of object and how many of it are in each object of the word before. Attributes
in parentheses count only if they are the ``indexes`` of ``pu``: the numbers that the operating
system gives to CPUs. Without them CPUs are numbered in order.
"""

import math
import re
from typing import NamedTuple

from seatrial.layout.node import MAX_CPUS, Core, NodeLayout, checked
from seatrial.lazy import regex

_WORD = regex(r"\s*(\[?)\s*([A-Za-z][A-Za-z0-9]*)?(?::?(\d+))?(\([^()]*\))?\s*(\]?)\s*")
_LOOP = regex(r"(\d+)\*(\d+)")
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
_CACHE = regex(r"l[1-5][di]?(cache)?|memcache|memorysidecache")
_EXAMPLE = "write e.g. pack:2 numa:2 core:6 pu:1"


class _Level(NamedTuple):
    """A word of the notation: the kind of object, its number in each object above, attributes."""

    kind: str
    number: int
    attributes: str


def parse(text: str) -> NodeLayout:
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
        found = _WORD.match(text, end)
        if found is None or found.end() == end or (found[1] == "[") != (found[5] == "]"):
            raise ValueError(f"{text[end:].strip()!r} is not hwloc's notation; {_EXAMPLE}")
        end = found.end()
        levels.append(_level(found, text))
    for kind in ("socket", "numa", "core", "pu"):
        if sum(level.kind == kind for level in levels) > 1:
            raise ValueError(f"{text!r} has two words for {kind}; {_EXAMPLE}")
    return levels


def _level(found: re.Match[str], text: str) -> _Level:
    attached, word, number, attributes, _ = found.groups()
    if not word:
        raise ValueError(f"{text!r}: {found[0].strip()!r} has no kind of object; {_EXAMPLE}")
    kind = _KINDS.get(word.lower())
    if kind is None and not _CACHE.fullmatch(word.lower()):
        known = "pack, die, numa, group, l3, l2, l1, core, pu"
        raise ValueError(f"{word!r} is not an object of hwloc's notation; there are {known}")
    if attached:  # memory of the objects of the word before, one each
        if kind != "numa":
            raise ValueError(f"{text!r}: only [numa] may be in brackets; {_EXAMPLE}")
        return _Level("numa", 1, "")
    if number is None or int(number[:6]) < 1:
        raise ValueError(f"{text!r}: {word} has no number above 0; {_EXAMPLE}")
    return _Level(kind or "", int(number[:6]), attributes or "")


def _numbers(attributes: str, total: int) -> list[int]:
    """Return the number of each CPU, in logical order, by the attribute ``indexes`` of pu: a list
    with commas, or loops ``step*count``, as hwloc has them."""
    found = re.search(r"indexes=([^\s)]*)", attributes)
    if found is None:
        return list(range(total))
    text = found[1]
    if re.fullmatch(r"\d{1,6}(,\d{1,6})*", text):
        numbers = [int(number) for number in text.split(",")]
    elif all(_LOOP.fullmatch(loop) for loop in text.split(":")):
        numbers = _looped([(int(loop[1]), int(loop[2])) for loop in _LOOP.finditer(text)], total)
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
