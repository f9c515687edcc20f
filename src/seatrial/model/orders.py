"""Rank orders: which rank is in which slot of the nodes.

    order = folded([4, 4])          # [0, 3, 4, 7, 1, 2, 5, 6]: two nodes of 4 slots each
    nodes_of_ranks(order, [4, 4])   # [0, 1, 1, 0, 0, 1, 1, 0]

An order lists ranks by slot: the slots of the first node, then those of the second, ... It is a
permutation of 0 to n - 1. ``sizes`` are the slots of each node; they add up to n.
"""

import itertools
import math
import random
import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby
from typing import Literal, get_args

from msgspec import Struct

from seatrial.units import count

Order = list[int]
MfdnKind = Literal["DM", "CM", "BDM", "BCM"]
MAX_RANKS = 1 << 22


def node_sizes(ranks: int, per_node: int) -> list[int]:
    """Return the slots of each node; the last one may have fewer. Raises ValueError."""
    if not 1 <= ranks <= MAX_RANKS:
        raise ValueError(f"{ranks} ranks: give 1 to {MAX_RANKS}")
    if per_node < 1:
        raise ValueError(f"{per_node} ranks per node: give at least 1")
    whole, rest = divmod(ranks, per_node)
    return [per_node] * whole + [rest] * (rest > 0)


def slots_of_tasks(nodes: int, tasks: int, per_node: int) -> list[int]:
    """Return how many tasks each node has: the first nodes are full, and each has a task if there
    are enough; nodes without one are left out. Launchers do the same."""
    sizes, left = [], tasks
    for after in reversed(range(nodes)):
        slots = min(per_node, max(left - after, min(left, 1)))
        if not slots:
            break
        sizes.append(slots)
        left -= slots
    return sizes


def smp(sizes: Sequence[int]) -> Order:
    """Return ranks in their order: a node is filled before the next (MPICH_RANK_REORDER_METHOD=1,
    the default of most libraries)."""
    return list(range(sum(sizes)))


def round_robin(sizes: Sequence[int]) -> Order:
    """Return ranks dealt out to the nodes in turn (MPICH_RANK_REORDER_METHOD=0)."""
    return _dealt(sizes, folds=False)


def folded(sizes: Sequence[int]) -> Order:
    """Return ranks dealt out to the nodes forth and back (MPICH_RANK_REORDER_METHOD=2)."""
    return _dealt(sizes, folds=True)


def _dealt(sizes: Sequence[int], folds: bool) -> Order:
    """Deal out ranks, turn by turn; a node that is full is passed over."""
    ranks_of_nodes: list[list[int]] = [[] for _ in sizes]
    rank = 0
    for turn in range(max(sizes, default=0)):
        open_nodes = [node for node, size in enumerate(sizes) if size > turn]
        for node in reversed(open_nodes) if folds and turn % 2 else open_nodes:
            ranks_of_nodes[node].append(rank)
            rank += 1
    return [rank for ranks in ranks_of_nodes for rank in ranks]


def shuffled(sizes: Sequence[int], seed: int) -> Order:
    """Return a random order, the same for the same seed."""
    order = smp(sizes)
    random.Random(seed).shuffle(order)
    return order


# ---- MFDn ---------------------------------------------------------------------------------


def _check_diagonals(number: int) -> None:
    if number < 1 or number % 2 == 0:
        raise ValueError(f"{number} diagonals: MFDn takes an odd number, such as 5")
    if number * (number + 1) // 2 > MAX_RANKS:
        raise ValueError(f"{number} diagonals are more than {MAX_RANKS} ranks")


def mfdn_cells(diagonals: int, kind: MfdnKind) -> list[tuple[int, int]]:
    """Return the cell (row, column) of the symmetric matrix that each rank of MFDn has.

    ``diagonals`` (n_d) is odd; there are n_d (n_d + 1) / 2 ranks. DM goes along the diagonals of
    the lower triangle, CM along its columns. BDM and BCM are the balanced ones, in which each
    column has (n_d + 1) / 2 cells: rows (j + k) mod n_d for k from 0 (Maris et al. 2010, Aktulga et
    al. 2014). Raises ValueError for an even number.
    """
    _check_diagonals(diagonals)
    n = diagonals
    half = range((n + 1) // 2)
    match kind:
        case "DM":
            return [(j + k, j) for k in range(n) for j in range(n - k)]
        case "CM":
            return [(i, j) for j in range(n) for i in range(j, n)]
        case "BDM":
            return [((j + k) % n, j) for k, j in itertools.product(half, range(n))]
        case "BCM":
            return [((j + k) % n, j) for j, k in itertools.product(range(n), half)]


def mfdn(diagonals: int, start: MfdnKind, wanted: MfdnKind) -> Order:
    """Return the order that puts ranks numbered by ``start`` in the slots of ``wanted``: the cells
    of a column (or diagonal) of ``wanted`` stand together. Both must be balanced, or both not, as
    only these have the same cells. Raises ValueError."""
    rank_of = {cell: rank for rank, cell in enumerate(mfdn_cells(diagonals, start))}
    cells = mfdn_cells(diagonals, wanted)
    if (lost := next((cell for cell in cells if cell not in rank_of), None)) is not None:
        raise ValueError(
            f"{start} has no cell {lost} of {wanted}; give DM and CM, or BDM and BCM, together"
        )
    return [rank_of[cell] for cell in cells]


# ---- any order ----------------------------------------------------------------------------


def parsed(text: str) -> Order:
    """Return the order that a file in the format of MPICH_RANK_ORDER has: ranks and spans with
    commas or blanks between, and comments. Raises ValueError with the line."""
    ranks: Order = []
    for number, line in enumerate(text.splitlines(), 1):
        for word in line.partition("#")[0].replace(",", " ").split():
            try:
                ranks += _span(word)
            except ValueError as error:
                raise ValueError(f"line {number}: {word!r} is {error}") from None
    return ranks


def _span(word: str) -> range:
    """Return the ranks of a word such as ``5`` or ``4-7``."""
    first, dash, last = word.partition("-")
    if not all(part.isascii() and part.isdigit() for part in (first, last or "0")):
        raise ValueError("no rank; write e.g. 0,2,4-7")
    ranks = range(int(first), int(last if dash and last else first) + 1)
    if (dash and not last) or not 0 < len(ranks) <= MAX_RANKS:
        raise ValueError("no span of ranks; write e.g. 4-7")
    return ranks


def checked(order: Sequence[int], ranks: int) -> Order:
    """Return an order of this many ranks. Raises ValueError with the rank that is missing, twice or
    too large."""
    seen: dict[int, int] = {}
    for slot, rank in enumerate(order, 1):
        if rank in seen:
            raise ValueError(
                f"rank {rank} is in the order twice, as number {seen[rank]} and number {slot} of "
                "the list; each rank must be there once"
            )
        if not 0 <= rank < ranks:
            raise ValueError(
                f"rank {rank} is in the order, as number {slot} of the list; of {ranks} the last "
                f"is {ranks - 1}, and each must be there once"
            )
        seen[rank] = slot
    if len(seen) < ranks:
        lost = next(rank for rank in range(ranks) if rank not in seen)
        raise ValueError(f"rank {lost} is not in the order; it has {len(seen)} of {ranks}")
    return list(order)


def goes_up(order: Sequence[int], sizes: Sequence[int]) -> bool:
    """Return whether the ranks of each node go up with its slots."""
    ends = set(itertools.accumulate(sizes))
    return all(
        a < b for slot, (a, b) in enumerate(itertools.pairwise(order), 1) if slot not in ends
    )


def with_nodes_in_order(
    order: Sequence[int], sizes: Sequence[int], numbers: Sequence[int]
) -> tuple[Order, list[int]]:
    """Return an order, and its sizes, with the nodes of these numbers one after the other."""
    starts = [0, *itertools.accumulate(sizes)]
    ranks_of_nodes = [list(order[starts[number] : starts[number + 1]]) for number in numbers]
    return [*itertools.chain.from_iterable(ranks_of_nodes)], [*map(len, ranks_of_nodes)]


def slots_of_ranks(order: Sequence[int], sizes: Sequence[int]) -> list[int]:
    """Return the slot of each rank on its node, from 0 on."""
    slots = [0] * len(order)
    for rank, slot in zip(order, (slot for size in sizes for slot in range(size)), strict=False):
        slots[rank] = slot
    return slots


def nodes_of_ranks(order: Sequence[int], sizes: Sequence[int]) -> list[int]:
    """Return the number of the node of each rank. Raises ValueError if there are more ranks than
    slots."""
    if len(order) > sum(sizes):
        raise ValueError(f"{len(order)} ranks, but {len(sizes)} nodes have {sum(sizes)} slots")
    slots = (node for node, size in enumerate(sizes) for _ in range(size))
    nodes = [0] * len(order)
    for rank, node in zip(order, slots, strict=False):
        nodes[rank] = node
    return nodes


# ---- order files ---------------------------------------------------------------------------------
#
# Rank orders as MPI libraries and Slurm read them.
#
#     rank_order(order, sizes)          # cray-mpich: MPICH_RANK_ORDER
#     hosts_by_rank(order, names, ...)  # Slurm: a file for SLURM_HOSTFILE and srun -m arbitrary
#     rankfile(order, names, sizes)     # Open MPI: mpirun --rankfile


def rank_order(order: Sequence[int], sizes: Sequence[int]) -> str:
    """Return the text of MPICH_RANK_ORDER: a line for each node. No spans: not all read them."""
    return "".join(f"{','.join(map(str, ranks))}\n" for ranks in _by_node(order, sizes))


def hosts_by_rank(order: Sequence[int], names: Sequence[str], sizes: Sequence[int]) -> str:
    """Return the host of each rank, a line each: Slurm's host file, and hydra's, too."""
    return "".join(f"{names[node]}\n" for node in nodes_of_ranks(order, sizes))


def rankmap(order: Sequence[int], sizes: Sequence[int]) -> str:
    """Return the number of the node of each rank: ``-rankmap`` of MPICH's mpiexec, from 4.1 on."""
    return ",".join(map(str, nodes_of_ranks(order, sizes)))


def rankfile(order: Sequence[int], names: Sequence[str], sizes: Sequence[int]) -> str:
    """Return a rankfile of Open MPI 4 and 5, in which a rank has the core with the number of its
    place on the node."""
    lines = {}
    for name, ranks in zip(names, _by_node(order, sizes), strict=True):
        lines.update({rank: f"rank {rank}={name} slot={slot}" for slot, rank in enumerate(ranks)})
    return "".join(f"{lines[rank]}\n" for rank in sorted(lines))


def _by_node(order: Sequence[int], sizes: Sequence[int]) -> list[list[int]]:
    """Return the ranks of each node, by slot."""
    by_node, first = [], 0
    for size in sizes:
        by_node.append(list(order[first : first + size]))
        first += size
    return by_node


def process_mapping(nodes: Sequence[int]) -> str:
    """Return PMI_process_mapping of ranks on these nodes: blocks of (first node, nodes, ranks of
    each)."""
    blocks: list[tuple[int, int, int]] = []
    for node, same in groupby(nodes):
        ranks = len(list(same))
        first, number, each = blocks[-1] if blocks else (-1, 0, 0)
        if number and each == ranks and node == first + number:
            blocks[-1] = (first, number + 1, each)
        else:
            blocks.append((node, 1, ranks))
    return f"(vector,{','.join(f'({a},{b},{c})' for a, b, c in blocks)})"


# ---- orders of a grid by cells -------------------------------------------------------------------
#
# Rank orders of a Cartesian grid by cells, as HPE's ``grid_order`` writes them.
#
#     grid = GridOrder(shape=(4, 4, 4), cell=(2, 2, 2), major="R", curve="Z")
#     written(grid)       # the text of a file MPICH_RANK_ORDER
#
# The ranks of a cell stand together, in ascending order. Curves go from cell to cell. Z: row after
# row, along the first dimension. P (Peano): rows in turn forth and back. H (Hilbert): along
# Hilbert's curve through the cube of cells that holds all (Skilling 2004); those outside the grid
# are left out. ``along`` has the dimensions, from 1 on, in which cells go up, the one that goes up
# first as first; those that it lacks follow.
#
# HPE documents which options there are (CPE 24, grid_order(1)), and two outputs of its program are
# public, both by one number as the cell and along Z. All else here is our reading of these.
#
# A cell with fewer dimensions than the grid is that of the dimensions along which ranks go up
# first: the last for row-major. Where a cell does not divide a dimension, the grid has regions of
# whole and of cut cells, one after the other, the whole ones first.


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
    "smp": smp,
    "round robin": round_robin,
    "round-robin": round_robin,
    "folded": folded,
}


class WrittenOrder(Struct, frozen=True):
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
    return _fitting(written, parsed(text), sizes)


def _fitting(text: str, order: Order, sizes: Sequence[int]) -> Order:
    ranks = sum(sizes)
    if len(order) != ranks:
        raise ValueError(f"{text} orders {count(len(order), 'rank')}, and there are {ranks}")
    return checked(order, ranks)


@lru_cache(maxsize=256)
def parse_order(text: str) -> WrittenOrder:
    """Return the order that words say. Raises ValueError with what to write."""
    words = " ".join(text.split())
    if make := _SIMPLE.get(words.lower()):
        return WrittenOrder(words, make)
    if match := re.fullmatch(_RANDOM, words, re.IGNORECASE):
        seed = int(match[1])
        return WrittenOrder(words, lambda sizes: shuffled(sizes, seed))
    if match := re.fullmatch(_FILE, words, re.IGNORECASE):
        return WrittenOrder(words, None, match[1])
    if match := re.fullmatch(_GRID, words, re.IGNORECASE):
        grid = _grid(match)
        return WrittenOrder(words, lambda sizes: order_of_grid(grid))
    if match := re.fullmatch(_MFDN, words, re.IGNORECASE):
        diagonals, kind = int(match[1]), _mfdn_kind(match[2])
        usual: MfdnKind = "BDM" if kind in ("BDM", "BCM") else "DM"
        start = _mfdn_kind(match[3]) if match[3] else usual
        order = mfdn(diagonals, start, kind)
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
