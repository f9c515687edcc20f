"""Sets of nodes as the bits of an integer, and as text.

    names = NodeNames(["n001", "n002", "n003"])
    names.mask("n[001-002]")    # 0b011
    names.text(0b110)           # "n[002-003]"

Bit i is the node at position i of the machine's list. Union, intersection and size of such sets of
some thousand nodes take a fraction of a microsecond.
"""

import re
from collections.abc import Iterator, Sequence

from seatrial.model.node_set import unfold

_NUMBERED = re.compile(r"(.*?)([0-9]+)", re.DOTALL)


class NodeNames:
    """The nodes of a machine, in order."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self.all = (1 << len(self.names)) - 1
        self._place = {name: place for place, name in enumerate(self.names)}
        kinds, self._last = _rows(self.names)
        distinct = list(dict.fromkeys(kinds))
        place_of = {kind: place for place, kind in enumerate(distinct)}
        self._prefixes = [prefix for prefix, _ in distinct]
        self._kind = [place_of[kind] for kind in kinds]
        self._number = [
            name[len(prefix) :] for name, (prefix, _) in zip(self.names, kinds, strict=True)
        ]
        self._masks: dict[str, int] = {"": 0}

    def bits(self, place: int) -> int:
        """Return the node at a position of the list."""
        return 1 << place

    def mask(self, text: str) -> int:
        """Return the nodes of a node set that the machine has. Raises ValueError."""
        if (known := self._masks.get(text)) is None:
            known = 0
            for name in unfold(text):
                if (place := self._place.get(name)) is not None:
                    known |= 1 << place
            self._masks[text] = known
        return known

    def text(self, mask: int) -> str:
        """Return a node set: ``n[001-048,050]``. Names that end in a number are folded by the part
        before it."""
        numbers, kinds, lasts = self._number, self._kind, self._last
        folded: dict[int, list[str]] = {}
        first = 0
        while mask:
            skipped = (mask & -mask).bit_length() - 1
            mask >>= skipped
            length = (~mask & (mask + 1)).bit_length() - 1
            mask >>= length
            first += skipped
            after = first + length
            while first < after:
                last = lasts[first]
                if last >= after:
                    last = after - 1
                kind, span = kinds[first], numbers[first]
                if last > first:
                    span = f"{span}-{numbers[last]}"
                if kind in folded:
                    folded[kind].append(span)
                else:
                    folded[kind] = [span]
                first = last + 1
        prefixes = self._prefixes
        return ",".join([_folded(prefixes[kind], spans) for kind, spans in folded.items()])


class SharedNode(NodeNames):
    """One node whose cores are the bits. Its name stands for all of them, and for any."""

    def __init__(self, name: str, cores: int) -> None:
        super().__init__([name])
        self.all = (1 << cores) - 1

    def bits(self, place: int) -> int:
        return self.all

    def mask(self, text: str) -> int:
        return self.all if super().mask(text) else 0

    def text(self, mask: int) -> str:
        return self.names[0] if mask else ""


# Names that can be folded together: the part before the number, and the width of the number where
# that matters (0: it does not, -1: there is no number).
_Kind = tuple[str, int]


def _folded(prefix: str, spans: list[str]) -> str:
    if len(spans) == 1 and "-" not in spans[0]:
        return prefix + spans[0]
    return f"{prefix}[{','.join(spans)}]"


def _rows(names: Sequence[str]) -> tuple[list[_Kind], list[int]]:
    """Return for each name its kind, and the position of the last name of its row: consecutive
    names of one kind whose numbers follow each other (001, 002; or 9, 10)."""
    parts = [_split(name) for name in names]
    kinds: list[_Kind] = []
    last: list[int] = []
    first = 0
    for place in range(1, len(names) + 1):
        if place < len(names) and _follows(parts[first], parts[place - 1], parts[place]):
            continue
        prefix, number = parts[first]
        width = len(number) if number.startswith("0") else 0 if number else -1
        kinds += [(prefix, width)] * (place - first)
        last += [place - 1] * (place - first)
        first = place
    return kinds, last


def _split(name: str) -> tuple[str, str]:
    match = _NUMBERED.fullmatch(name)
    return (match[1], match[2]) if match else (name, "")


def _follows(first: tuple[str, str], before: tuple[str, str], this: tuple[str, str]) -> bool:
    if this[0] != before[0] or not (this[1] and before[1]) or int(this[1]) != int(before[1]) + 1:
        return False
    padded = first[1].startswith("0")
    return len(this[1]) == len(before[1]) or not (padded or this[1].startswith("0"))


def runs(mask: int) -> Iterator[tuple[int, int]]:
    """Yield the runs of bits that are set, lowest first: (first, last + 1)."""
    place = 0
    while mask:
        skipped = (mask & -mask).bit_length() - 1
        mask >>= skipped
        length = (~mask & (mask + 1)).bit_length() - 1
        yield place + skipped, place + skipped + length
        mask >>= length
        place += skipped + length


def choose(mask: int, count: int) -> int:
    """Return ``count`` of the bits that are set, in few runs: a run of exactly that length; else
    the lowest run that holds them all; else the longest runs. ``mask`` must have enough bits."""
    if mask.bit_count() == count:
        return mask
    chosen, powers = 0, _powers(mask, count)
    while True:
        length = 1 << len(powers) - 1
        starts = powers[-1] if 2 * length > count else 0
        if starts := starts & (starts >> (count - length)):
            begins = starts & ~(starts << 1)
            first = begins & ~(mask >> count) or begins
            return chosen | ((1 << count) - 1) << ((first & -first).bit_length() - 1)
        run = _longest(powers)
        chosen |= run
        mask ^= run
        count -= run.bit_count()
        powers = [starts & mask for starts in powers]
        while 1 << len(powers) - 1 > count or not powers[-1]:
            powers.pop()


def _powers(mask: int, most: int) -> list[int]:
    """Return the bits at which at least 1, 2, 4, ... consecutive bits are set, up to ``most`` of
    them."""
    powers, length = [mask], 1
    while 2 * length <= most and (mask := mask & (mask >> length)):
        powers.append(mask)
        length *= 2
    return powers


def _longest(powers: list[int]) -> int:
    """Return the longest run of bits that are set; of equal ones the lowest."""
    starts, length = powers[-1], 1 << len(powers) - 1
    for power in range(len(powers) - 2, -1, -1):
        if longer := starts & (powers[power] >> length):
            starts, length = longer, length + (1 << power)
    return ((1 << length) - 1) << ((starts & -starts).bit_length() - 1)
