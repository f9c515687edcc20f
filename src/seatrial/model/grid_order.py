"""Rank orders of a Cartesian grid by cells, as HPE's ``grid_order`` writes them.

    grid = GridOrder(shape=(4, 4, 4), cell=(2, 2, 2), major="R", curve="Z")
    written(grid)       # the text of a file MPICH_RANK_ORDER

The ranks of a cell stand together, in ascending order. Curves go from cell to cell. Z: row after
row, along the first dimension. P (Peano): rows in turn forth and back. H (Hilbert): along Hilbert's
curve through the cube of cells that holds all (Skilling 2004); those outside the grid are left out.
``along`` has the dimensions, from 1 on, in which cells go up, the one that goes up first as first;
those that it lacks follow.

HPE documents which options there are (CPE 24, grid_order(1)), and two outputs of its program are
public, both by one number as the cell and along Z. All else here is our reading of these.

A cell with fewer dimensions than the grid is that of the dimensions along which ranks go up first:
the last for row-major. Where a cell does not divide a dimension, the grid has regions of whole and
of cut cells, one after the other, the whole ones first.
"""

import itertools
import math
import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple, get_args

from msgspec import Struct

from seatrial.model import orders
from seatrial.model.orders import MAX_RANKS, MfdnKind, Order
from seatrial.units import count

Major = Literal["C", "R"]
Curve = Literal["Z", "P", "H"]
Point = tuple[int, ...]
MAX_DIMENSIONS = 8


class GridOrder(Struct, frozen=True):
    """What is asked."""

    #: The lengths of the grid, and of a cell.
    shape: tuple[int, ...]
    cell: tuple[int, ...]
    #: The numbering. C: column-major, the first dimension goes up first; R: row-major, the last.
    major: Major = "R"
    curve: Curve = "Z"
    #: The number of the first rank, and that from which on ranks are left out (0: none).
    start: int = 0
    limit: int = 0
    #: The dimensions in the order in which cells go up.
    along: tuple[int, ...] = ()


class GridRegion(Struct, frozen=True):
    """Cells of one size: the number of the region, which dimensions are cut (1) or not (0), and the
    ranks of each cell."""

    number: int
    cut: tuple[int, ...]
    cells: list[list[int]]


def check_grid(grid: GridOrder) -> None:
    """Raise ValueError with what is wrong with a grid, and the remedy."""
    for name, lengths in (("-g", grid.shape), ("-c", grid.cell)):
        if not lengths or min(lengths) < 1:
            text = ",".join(map(str, lengths))
            raise ValueError(f"{name} {text}: lengths are 1 or more; write e.g. {name} 4,4,4")
    if len(grid.shape) > MAX_DIMENSIONS:
        raise ValueError(f"-g: {len(grid.shape)} dimensions; {MAX_DIMENSIONS} are the most")
    if len(grid.cell) > len(grid.shape):
        have, dimensions = len(grid.cell), len(grid.shape)
        raise ValueError(
            f"-c: a cell of {have} dimensions in a grid of {dimensions}; give {dimensions}"
        )
    wrong = next((axis for axis in grid.along if not 1 <= axis <= len(grid.shape)), None)
    if wrong is not None or len(set(grid.along)) < len(grid.along):
        axes = ",".join(map(str, grid.along))
        raise ValueError(
            f"-o {axes}: give each dimension once, from 1 to {len(grid.shape)}, such as -o 2,1"
        )
    if math.prod(grid.shape) > MAX_RANKS:
        raise ValueError(f"-g: more than {MAX_RANKS} ranks")


def order_of_grid(grid: GridOrder) -> Order:
    """Return the ranks of all cells. Raises ValueError."""
    return [rank for region in regions(grid) for cell in region.cells for rank in cell]


def regions(grid: GridOrder) -> list[GridRegion]:
    """Return the regions that have cells, numbered as among all that there could be: by the number
    of cut dimensions, then by the first of these."""
    check_grid(grid)
    cell = _whole_cell(grid)
    choices = itertools.product((0, 1), repeat=len(grid.shape))
    ordered = sorted(choices, key=lambda cut: (sum(cut), [-each for each in cut]))
    with_cells = []
    for number, cut in enumerate(ordered):
        cells = [ranks for ranks in _cells(grid, cell, cut) if ranks]
        if cells:
            with_cells.append(GridRegion(number, cut, cells))
    return with_cells


def _whole_cell(grid: GridOrder) -> Point:
    """Return the cell with a length for each dimension."""
    missing = (1,) * (len(grid.shape) - len(grid.cell))
    if grid.major == "C":
        return (*grid.cell, *missing)
    return (*missing, *reversed(grid.cell)) if missing else grid.cell


def _cells(grid: GridOrder, cell: Point, cut: Sequence[int]) -> Iterator[list[int]]:
    """Yield the ranks of each cell of a region, along the curve."""
    first, size, number = [], [], []
    for length, side, is_cut in zip(grid.shape, cell, cut, strict=True):
        whole, rest = divmod(length, side)
        first.append(whole * side if is_cut else 0)
        size.append(rest if is_cut else side)
        number.append((1 if rest else 0) if is_cut else whole)
    strides = _strides(grid)
    inside = itertools.product(*map(range, size))
    offsets = sorted(_dot(point, strides) for point in inside)
    for at in cell_positions(grid, number):
        corner = [f + p * s for f, p, s in zip(first, at, size, strict=True)]
        lowest = grid.start + _dot(corner, strides)
        ranks = [lowest + step for step in offsets]
        yield [rank for rank in ranks if rank < grid.limit] if grid.limit else ranks


def _dot(point: Sequence[int], strides: Sequence[int]) -> int:
    return sum(x * stride for x, stride in zip(point, strides, strict=True))


def _strides(grid: GridOrder) -> list[int]:
    """Return by how much the rank goes up along each dimension."""
    if grid.major == "C":
        return [math.prod(grid.shape[:i]) for i in range(len(grid.shape))]
    return [math.prod(grid.shape[i + 1 :]) for i in range(len(grid.shape))]


# ---- curves -------------------------------------------------------------------------------


def cell_positions(grid: GridOrder, number: Sequence[int]) -> Iterator[Point]:
    """Yield the positions of cells along a grid's curve; ``number`` of them in each dimension."""
    axes = [axis - 1 for axis in grid.along]
    axes += [axis for axis in range(len(number)) if axis not in axes]
    for point in _positions(grid.curve, tuple(number[axis] for axis in axes)):
        placed = [0] * len(axes)
        for axis, x in zip(axes, point, strict=True):
            placed[axis] = x
        yield tuple(placed)


@lru_cache(maxsize=8)
def _positions(curve: Curve, number: Point) -> list[Point]:
    """Return the positions of cells along a curve; ``number`` of them in each dimension."""
    if curve == "H" and len(number) > 1:
        return _hilbert(number)
    return list(_rows(number, folds=curve == "P"))


def _rows(number: Sequence[int], folds: bool) -> Iterator[Point]:
    """Yield positions row after row along the first dimension. If rows fold, every other goes back,
    so that two cells that follow each other touch."""
    if not number:
        yield ()
        return
    for place, rest in enumerate(_rows(number[1:], folds)):
        row = range(number[0])
        for x in reversed(row) if folds and place % 2 else row:
            yield (x, *rest)


def _hilbert(number: Sequence[int]) -> list[Point]:
    bits = max(1, (max(number) - 1).bit_length())
    points = itertools.product(*map(range, number))
    return sorted(points, key=lambda point: _hilbert_index(point, bits))


def _hilbert_index(point: Point, bits: int) -> int:
    """Return the index of a point on Hilbert's curve (Skilling 2004, AxestoTranspose)."""
    x = list(point)
    turn = 0
    for step in (1 << bit for bit in range(bits - 1, 0, -1)):
        for i in range(len(x)):
            if x[i] & step:
                x[0] ^= step - 1
            else:
                swap = (x[0] ^ x[i]) & (step - 1)
                x[0] ^= swap
                x[i] ^= swap
    for i in range(1, len(x)):
        x[i] ^= x[i - 1]
    for step in (1 << bit for bit in range(bits - 1, 0, -1)):
        turn ^= step - 1 if x[-1] & step else 0
    index = 0
    for bit in range(bits - 1, -1, -1):
        for value in x:
            index = index << 1 | ((value ^ turn) >> bit & 1)
    return index


# ---- the text -----------------------------------------------------------------------------


def written(grid: GridOrder, per_line: int = 0, quiet: bool = False) -> str:
    """Return the text of a file MPICH_RANK_ORDER. ``per_line``: ranks of a line (0: of a cell as it
    was asked for); ``quiet``: no comments."""
    per_line = per_line or math.prod(grid.cell)
    lengths, cell = (",".join(map(str, each)) for each in (grid.shape, grid.cell))
    head = f"# grid_order -{grid.major} -{grid.curve} -c {cell} -g {lengths}"
    if grid.along:
        head += f" -o {','.join(map(str, grid.along))}"
    lines, done = [head], grid.start
    for region in regions(grid):
        ranks = [rank for ranks_of_cell in region.cells for rank in ranks_of_cell]
        cut = ",".join(map(str, region.cut))
        lines.append(f"# Region {region.number}: {cut} ({done}..{done + len(ranks) - 1})")
        for i in range(0, len(ranks), per_line):
            lines.append(",".join(map(str, ranks[i : i + per_line])))
        done += len(ranks)
    return "\n".join(line for line in lines if not (quiet and line.startswith("#"))) + "\n"


# ---- order words ---------------------------------------------------------------------------------
#
# Rank orders by words, as tests and people write them.
#
#     parse_order("folded").order([4, 4])                 # [0, 3, 4, 7, 1, 2, 5, 6]
#     parse_order("grid 4x4 by 2x2 column Hilbert")    # cells of 2 x 2 along Hilbert's curve
#
# - ``smp``: a node is filled before the next. - ``round robin``, ``folded``: ranks are dealt out
# to the nodes in turn, or forth and back. - ``grid 16x16x8 by 4x4x2``: by cells of a grid; ``row``
# or ``column`` says along which dimension ranks go up (row: the last), ``Z``, ``Peano`` or
# ``Hilbert`` the way from cell to cell. - ``mfdn 5 BDM``: of MFDn with 5 diagonals; ``from DM``
# says how the program numbers its ranks. - ``file NAME``: of a file in the format of
# MPICH_RANK_ORDER. - ``random SEED``: shuffled, the same for the same seed.


EXAMPLES = "smp, round robin, folded, grid 8x8 by 2x2, mfdn 5 BDM, file NAME or random 1"

_SIZE = r"\d{1,7}(?:[x,]\d{1,7})*"
_GRID = rf"grid ({_SIZE}) by ({_SIZE})((?: [a-z]+)*)"
_MFDN = r"mfdn (\d{1,6}) (\w+)(?: from (\w+))?"
_RANDOM = r"random (\d{1,15})"
_FILE = r"file (\S.*)"
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

    def order(self, sizes: Sequence[int]) -> Order:
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
    if match := re.fullmatch(_RANDOM, words, re.IGNORECASE):
        seed = int(match[1])
        return WrittenOrder(words, lambda sizes: orders.shuffled(sizes, seed))
    if match := re.fullmatch(_FILE, words, re.IGNORECASE):
        return WrittenOrder(words, None, match[1])
    if match := re.fullmatch(_GRID, words, re.IGNORECASE):
        grid = _grid(match)
        return WrittenOrder(words, lambda sizes: order_of_grid(grid))
    if match := re.fullmatch(_MFDN, words, re.IGNORECASE):
        diagonals, kind = int(match[1]), _mfdn_kind(match[2])
        usual: MfdnKind = "BDM" if kind in ("BDM", "BCM") else "DM"
        start = _mfdn_kind(match[3]) if match[3] else usual
        order = orders.mfdn(diagonals, start, kind)
        return WrittenOrder(words, lambda sizes: order)
    raise ValueError(f"{text!r} is no rank order; write {EXAMPLES}")


def _grid(match: re.Match[str]) -> GridOrder:
    shape, cell = (tuple(map(int, re.split("[x,]", match[i]))) for i in (1, 2))
    major: Major = "R"
    curve: Curve = "Z"
    for word in match[3].lower().split():
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
