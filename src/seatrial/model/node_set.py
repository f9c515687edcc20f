"""Sets of nodes in ClusterShell's notation.

    unfold("n[001-128],login1")     # ("n001", ..., "login1")
    fold(["n001", "n002"])          # n[001-002]

In the shapes of files they are ``NodeSet``, texts whose faults are found where they stand.
"""

import functools
import math
import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice, product, zip_longest
from typing import Annotated

from seatrial.lazy import nodeset
from seatrial.model.file_model import checked

MAX_NODES = 100_000

_NODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_FOLDED = re.compile(r"(?:[^,\[]|\[[^\[\]]*\])+")
_GROUP = re.compile(r"\[([^\[\]]*)\]")
_SPAN = re.compile(r"([0-9]{1,18})(?:-([0-9]{1,18}))?")
_STEPS = re.compile(r"\s*([0-9]{1,18})(?:-([0-9]{1,18})(?:/([0-9]{1,18}))?)?\s*")
_NUMBER = re.compile(r"([0-9]+)")
_PART = re.compile(r"([0-9]+|\[[0-9,-]+\])")
_ITEM = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]|\[[0-9,-]+\])*")


# The names of a pattern, such as ``r%sn%s``: its words, and for each name the numbers between them.
Words = tuple[str, ...]
Numbers = tuple[str, ...]
# The numbers at each place, ascending: all combinations of them.
Box = Sequence[Sequence[str]]


@functools.lru_cache(maxsize=256)
def unfold(names: str) -> tuple[str, ...]:
    """Return the names of a node set such as ``n[001-128],login1``. Raises ValueError."""
    if "[" not in names and "," not in names:
        nodes: tuple[str, ...] = (names,)
    elif _count(names) > MAX_NODES:
        raise ValueError(f"{names!r} is more than {MAX_NODES} nodes; write e.g. n[001-128]")
    elif boxes := _read(names):
        return tuple(_names_in(boxes))  # their words and numbers make nothing but names
    else:
        try:
            nodes = tuple(nodeset.NodeSet(names, resolver=nodeset.RESOLVER_NOGROUP))
        except (nodeset.NodeSetException, ValueError) as error:
            message = f"{names!r} is not a node set: {error}; write e.g. n[001-128]"
            raise ValueError(message) from error
    for name in nodes or ("",):
        if not _NODE.fullmatch(name):
            raise ValueError(f"{names!r} is not a node set: a name {name!r}; write e.g. n[001-128]")
    return nodes


def _read(names: str) -> dict[Words, list[Box]]:
    """Return the boxes that a node set has of each pattern; none if it has what ClusterShell knows
    how to read: digits beside brackets, steps, differences, ends of unlike padding."""
    boxes: dict[Words, list[Box]] = {}
    items = _FOLDED.findall(names)
    if ",".join(items) != names:
        return {}
    for item in items:
        parts = _PART.split(item) if _ITEM.fullmatch(item) else []
        box = [_numbers(part) for part in parts[1::2]]
        if not parts or "" in parts[2:-1:2] or not all(box):
            return {}
        boxes.setdefault(tuple(parts[::2]), []).append(box)
    return boxes


def _numbers(part: str) -> list[str]:
    """Return the numbers of ``7`` or ``[001-128,200]``, ascending; none if the ends of a span are
    of unlike padding, or do not ascend."""
    numbers: list[str] = []
    for text in part.strip("[]").split(","):
        span = _SPAN.fullmatch(text)
        found = _numbers_of(span[1], span[2] or span[1]) if span else []
        if not found:
            return []
        numbers += found
    return _ascending(numbers) if "," in part else numbers


def _numbers_of(first: str, last: str) -> list[str]:
    padded = _padding(first) or _padding(last)
    if padded and len(first) != len(last):
        return []
    width = len(first) if padded else 0
    return [f"{number:0{width}}" for number in range(int(first), int(last) + 1)]


def _names_in(boxes: Mapping[Words, Sequence[Box]]) -> Iterator[str]:
    """Yield the names in boxes, in ClusterShell's order: by pattern, and the largest box first."""
    for words in sorted(boxes, key="%s".join):
        of_pattern = boxes[words]
        if len(of_pattern) > 1:
            of_pattern = _boxes({numbers for box in of_pattern for numbers in product(*box)})
        pattern = "%s".join(words)
        for box in of_pattern:
            for numbers in product(*box):
                yield pattern % numbers


def unfold_or_empty(names: str) -> tuple[str, ...]:
    """Return the names of a node set that a scheduler or a job wrote; none if it is empty or
    malformed."""
    try:
        return unfold(names) if names else ()
    except ValueError:
        return ()


def fold(names: Collection[str]) -> str:
    """Return the node set of these names, such as ``n[001-128],login1``; "" if there are none."""
    if len(names) < 2:
        return next(iter(names), "")
    rows: dict[Words, list[Numbers]] = {}
    for name in set(names):
        parts = _NUMBER.split(name)
        rows.setdefault(tuple(parts[::2]), []).append(tuple(parts[1::2]))
    patterns = sorted(rows, key="%s".join)
    return ",".join(_written(words, box) for words in patterns for box in _boxes(rows[words]))


def _written(words: Words, box: Box) -> str:
    """Return the folded names of a box."""
    shown = [f"[{_spans(numbers)}]" if len(numbers) > 1 else numbers[0] for numbers in box]
    return "".join(part for pair in zip_longest(words, shown, fillvalue="") for part in pair)


def _spans(numbers: Sequence[str]) -> str:
    """Return numbers, ascending, as spans: ``001-128,200``. In a span all numbers have one width,
    or none has zeros before it."""
    start = before = numbers[0]
    padding = _padding(start)
    spans = []
    for number in numbers[1:]:
        alike = len(number) == padding if padding else not _padding(number)
        if not alike:
            padding = _padding(number)
        if not alike or int(number) != int(before) + 1:
            spans.append(start if start == before else f"{start}-{before}")
            start = number
        before = number
    return ",".join([*spans, start if start == before else f"{start}-{before}"])


def _padding(number: str) -> int:
    """Return the width of a number with zeros before it; 0 of one without."""
    return len(number) if number[:1] == "0" and len(number) > 1 else 0


def _ascending(numbers: Iterable[str]) -> list[str]:
    return sorted(sorted(set(numbers)), key=len)


def _count(names: str) -> int:
    """Return the number of names in a node set, before they are written out; equal names count each
    time. Raises ValueError for a range that is malformed."""
    total = 0
    for folded in _FOLDED.findall(names):
        number = 1
        for group in _GROUP.findall(folded):
            number *= sum(_length(span, names) for span in group.split(","))
        total += number
    return total


def _length(span: str, names: str) -> int:
    """Return how many numbers ``7``, ``1-128`` or ``1-128/2`` has, before they are written out.
    Raises ValueError."""
    ends = _STEPS.fullmatch(span)
    if ends is None:
        text = f"{names!r} is not a node set: a range {span!r}; write e.g. n[001-128]"
        raise ValueError(text)
    first, last, step = int(ends[1]), int(ends[2] or ends[1]), int(ends[3] or 1)
    return max(1, (last - first) // max(1, step) + 1)


def not_among(nodes: str, named: Collection[str]) -> list[str]:
    """Return the nodes of a run, folded, that are not among those that were told of. These may have
    a domain behind their names. None are missing if no name is among them, and as many are told of:
    a site may have two names for each node."""
    short = {name.partition(".")[0] for name in named}
    names = unfold_or_empty(nodes)
    missing = [node for node in names if node.partition(".")[0] not in short]
    return [] if len(missing) == len(names) <= len(short) else missing


# ---- boxes -------------------------------------------------------------------------------------
#
# Names with several numbers are folded as ClusterShell folds them, so that a set has one text. Its
# algorithm joins two boxes that differ at one place alone, first neighbours, then any. Here a box
# has a bit mask for each place, and boxes that can be joined are found by what they have alike.


Masks = tuple[int, ...]


def _boxes(rows: Collection[Numbers]) -> list[Box]:
    """Return boxes that hold each row once, in ClusterShell's order."""
    places = [_ascending(column) for column in zip(*rows, strict=True)]
    if math.prod(map(len, places)) == len(rows):
        return [places]
    bits = [{number: 1 << i for i, number in enumerate(place)} for place in places]
    masks = [tuple(map(dict.__getitem__, bits, row)) for row in sorted(rows)]
    return [
        [_chosen(place, mask) for place, mask in zip(places, box, strict=True)]
        for box in _merged(masks, places)
    ]


def _chosen(place: Sequence[str], mask: int) -> list[str]:
    """Return the numbers whose bits are set."""
    return [number for number, bit in zip(place, bin(mask)[:1:-1], strict=False) if bit == "1"]


def _merged(boxes: list[Masks], places: Sequence[Sequence[str]]) -> list[Masks]:
    """Return boxes, given in their order, joined until none can be joined."""

    def order(box: Masks) -> tuple[int, list[tuple[int, str, str]]]:
        """The largest box first, then the largest place, then the lowest numbers as texts."""
        sizes = [mask.bit_count() for mask in box]
        lowest = [place[(m & -m).bit_length() - 1] for place, m in zip(places, box, strict=True)]
        highest = [place[m.bit_length() - 1] for place, m in zip(places, box, strict=True)]
        return -math.prod(sizes), list(zip((-n for n in sizes), lowest, highest, strict=True))

    join = _with_neighbours
    while True:
        joined = join(boxes)
        if len(joined) == len(boxes):
            if join is _with_any:
                return boxes
            join = _with_any
        boxes = sorted(joined, key=order)


def _with_neighbours(boxes: Sequence[Masks]) -> list[Masks]:
    """Return boxes, each joined with those that follow it, up to the first that does not fit."""
    joined = [boxes[0]]
    for box in boxes[1:]:
        unlike = [i for i, (a, b) in enumerate(zip(joined[-1], box, strict=True)) if a != b]
        if len(unlike) == 1:
            joined[-1] = _join(joined[-1], box)
        else:
            joined.append(box)
    return joined


def _with_any(boxes: Sequence[Masks]) -> list[Masks]:
    """Return boxes, each joined with all later ones that fit, in their order."""
    alike: dict[tuple[int, Masks], list[int]] = {}  # positions by what is left without a place
    for position, box in enumerate(boxes):
        for key in _without_a_place(box):
            alike.setdefault(key, []).append(position)
    gone = set[int]()
    joined = []
    for position, box in enumerate(boxes):
        if position in gone:
            continue
        after = _next_fit(alike, box, position, gone)
        while after is not None:
            gone.add(after)
            box = _join(box, boxes[after])
            after = _next_fit(alike, box, after, gone)
        joined.append(box)
    return joined


def _next_fit(
    alike: Mapping[tuple[int, Masks], Sequence[int]], box: Masks, after: int, gone: set[int]
) -> int | None:
    """Return the position of the next box that differs at one place alone and is not gone."""
    fits: list[int] = []
    for key in _without_a_place(box):
        positions = alike.get(key, ())
        later = range(bisect_right(positions, after), len(positions))
        fits += islice((positions[i] for i in later if positions[i] not in gone), 1)
    return min(fits, default=None)


def _without_a_place(box: Masks) -> list[tuple[int, Masks]]:
    return [(place, box[:place] + box[place + 1 :]) for place in range(len(box))]


def _join(a: Masks, b: Masks) -> Masks:
    return tuple(x | y for x, y in zip(a, b, strict=True))


# ---- in files ----------------------------------------------------------------------------------


NodeSet = Annotated[str, checked(unfold)]
NodeSetOrNone = Annotated[str, checked(lambda names: names and unfold(names))]
