"""Rank orders by words, as tests and people write them.

    parse_order("folded").of([4, 4])                 # [0, 3, 4, 7, 1, 2, 5, 6]
    parse_order("grid 4x4 by 2x2 column Hilbert")    # cells of 2 x 2 along Hilbert's curve

- ``smp``: a node is filled before the next.
- ``round robin``, ``folded``: ranks are dealt out to the nodes in turn, or forth and back.
- ``grid 16x16x8 by 4x4x2``: by cells of a grid; ``row`` or ``column`` says along which dimension
  ranks go up (row: the last), ``Z``, ``Peano`` or ``Hilbert`` the way from cell to cell.
- ``mfdn 5 BDM``: of MFDn with 5 diagonals; ``from DM`` says how the program numbers its ranks.
- ``file NAME``: of a file in the format of MPICH_RANK_ORDER.
- ``random SEED``: shuffled, the same for the same seed.
"""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple, get_args

from seatrial.layout import orders
from seatrial.layout.grid_order import Curve, GridOrder, Major, check_grid, order_of_grid
from seatrial.layout.orders import MfdnKind, Order
from seatrial.lazy import regex
from seatrial.units import count

EXAMPLES = "smp, round robin, folded, grid 8x8 by 2x2, mfdn 5 BDM, file NAME or random 1"

_SIZE = r"\d{1,7}(?:[x,]\d{1,7})*"
_GRID = regex(rf"grid ({_SIZE}) by ({_SIZE})((?: [a-z]+)*)", re.IGNORECASE)
_MFDN = regex(r"mfdn (\d{1,6}) (\w+)(?: from (\w+))?", re.IGNORECASE)
_RANDOM = regex(r"random (\d{1,15})", re.IGNORECASE)
_FILE = regex(r"file (\S.*)", re.IGNORECASE)
_MAJORS: dict[str, Major] = {"row": "R", "column": "C"}
_CURVES: dict[str, Curve] = {"z": "Z", "peano": "P", "hilbert": "H"}
_SIMPLE: dict[str, Callable[[Sequence[int]], Order]] = {
    "smp": orders.smp,
    "round robin": orders.round_robin,
    "round-robin": orders.round_robin,
    "folded": orders.folded,
}


class WrittenOrder(NamedTuple):
    """An order by words. ``make`` gives it for the slots of each node; it is None for an order that
    is in a ``file``."""

    text: str
    make: Callable[[Sequence[int]], Order] | None
    file: str = ""

    def of(self, sizes: Sequence[int]) -> Order:
        """Return the order for nodes with so many slots. Raises ValueError if it has not as many
        ranks as there are slots."""
        assert self.make is not None
        return _fitting(self.text, self.make(sizes), sizes)


def order_in(text: str, written: str, sizes: Sequence[int]) -> Order:
    """Return the order of the words ``written`` whose file has this text. Raises ValueError."""
    return _fitting(written, orders.parsed(text), sizes)


def _fitting(text: str, order: Order, sizes: Sequence[int]) -> Order:
    ranks = sum(sizes)
    if len(order) != ranks:
        raise ValueError(f"{text} orders {count(len(order), 'rank')}, and there are {ranks}")
    return orders.checked(order, ranks)


@lru_cache(maxsize=256)
def parse_order(text: str) -> WrittenOrder:
    """Return the order that words say. Raises ValueError with what to write."""
    words = " ".join(text.split())
    if make := _SIMPLE.get(words.lower()):
        return WrittenOrder(words, make)
    if found := _RANDOM.fullmatch(words):
        seed = int(found[1])
        return WrittenOrder(words, lambda sizes: orders.shuffled(sizes, seed))
    if found := _FILE.fullmatch(words):
        return WrittenOrder(words, None, found[1])
    if found := _GRID.fullmatch(words):
        grid = _grid(found)
        return WrittenOrder(words, lambda sizes: order_of_grid(grid))
    if found := _MFDN.fullmatch(words):
        diagonals, kind = int(found[1]), _mfdn_kind(found[2])
        usual: MfdnKind = "BDM" if kind in ("BDM", "BCM") else "DM"
        start = _mfdn_kind(found[3]) if found[3] else usual
        order = orders.mfdn(diagonals, start, kind)
        return WrittenOrder(words, lambda sizes: order)
    raise ValueError(f"{text!r} is no rank order; write {EXAMPLES}")


def _grid(found: re.Match[str]) -> GridOrder:
    shape, cell = (tuple(map(int, re.split("[x,]", found[i]))) for i in (1, 2))
    major: Major = "R"
    curve: Curve = "Z"
    for word in found[3].lower().split():
        if word in _MAJORS:
            major = _MAJORS[word]
        elif word in _CURVES:
            curve = _CURVES[word]
        else:
            raise ValueError(f"{word!r} is none of row, column, Z, Peano, Hilbert")
    grid = GridOrder(shape, cell, major, curve)
    check_grid(grid)
    return grid


def _mfdn_kind(word: str) -> MfdnKind:
    for kind in get_args(MfdnKind):
        if word.upper() == kind:
            return kind  # type: ignore[no-any-return]
    raise ValueError(f"{word!r} is none of {', '.join(get_args(MfdnKind))}")
