"""The nodes of a trial as bits of whole numbers, so that sets of thousands are compared at once.

bits = NodeBits(names)
bits.of("n[001-128]") & bits.of("n[100-200]")
"""

from collections.abc import Collection, Iterable, Iterator

from seatrial.lazy import regex
from seatrial.machine.node_sets import unfold_or_empty

MAX_KNOWN = 20_000  # node sets whose bits are kept

_ROWS = regex(r"([A-Za-z0-9._-]*?)\[([0-9,-]+)\]")
_NUMBERED = regex(r"(.*?)([0-9]+)")


class NodeBits:
    """The nodes of a trial, each as a bit of a whole number, in the order of their names."""

    def __init__(self, names: Collection[str]) -> None:
        self.names = sorted(names)
        self._position = {name: number for number, name in enumerate(self.names)}
        self._row: list[int] = []  # where the consecutive numbers begin that a node is one of
        self._known: dict[str, int] = {}
        self._spans: dict[str, dict[str, int]] = {}
        before: tuple[str, int, int] | None = None
        for number, name in enumerate(self.names):
            found = _NUMBERED.fullmatch(name)
            now = (found[1], len(found[2]), int(found[2])) if found else None
            follows = now and before and (now[0], now[1], now[2] - 1) == before
            self._row.append(self._row[-1] if follows else number)
            before = now

    def of(self, folded: str) -> int:
        """Return the bits of a node set that a scheduler wrote, without nodes of other trials."""
        bits = self._known.get(folded)
        if bits is None:
            if len(self._known) >= MAX_KNOWN:
                self._known.clear()
                self._spans.clear()
            bits = self._known[folded] = self._bits(folded)
        return bits

    def _bits(self, folded: str) -> int:
        if len(self.names) == 1:  # a host may know itself by another name
            return 1
        position = self._position.get(folded)
        if position is not None:
            return 1 << position
        found = _ROWS.fullmatch(folded)
        bits = self._of_spans(found[1], found[2]) if found else None
        return self.of_names(unfold_or_empty(folded)) if bits is None else bits

    def of_names(self, names: Iterable[str]) -> int:
        """Return the bits of these nodes, without those that the trial does not have."""
        bits = 0
        for name in names:
            if (position := self._position.get(name)) is not None:
                bits |= 1 << position
        return bits

    def _of_spans(self, stem: str, spans: str) -> int | None:
        """Return the bits of ``001-128,200``; None if they are not rows of known nodes."""
        bits, known = 0, self._spans.setdefault(stem, {})
        for span in spans.split(","):
            if (row := known.get(span)) is None:
                row = known[span] = self._of_row(stem, span)
            if not row:
                return None
            bits |= row
        return bits

    def _of_row(self, stem: str, span: str) -> int:
        """Return the bits of ``001-128``; 0 if it is not a row of known nodes."""
        first, _, last = span.partition("-")
        low = self._position.get(stem + first)
        high = self._position.get(stem + last) if last else low
        if low is None or high is None or self._row[low] != self._row[high] or high < low:
            return 0
        return ((1 << (high - low + 1)) - 1) << low

    def names_in(self, bits: int) -> Iterator[str]:
        """Yield the names of the nodes of these bits."""
        while bits:
            lowest = bits & -bits
            yield self.names[lowest.bit_length() - 1]
            bits ^= lowest
