"""Orders of a grid: HPE's own output byte for byte, whole cells, and curves."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.model.orders import Curve, GridOrder, checked, order_of_grid, regions, written

# The second output of HPE's program that is public, as ARCHER2's documentation shows it: of two
# nodes with 128 ranks, from which (and up to which) line each goes.
ARCHER2 = ("0,1,2,3,32,33,34,35,64,65,66,67,", "16,17,18,19,48,49,50,51,80,81,82,83,")
ENDS = ("204,205,206,207,236,237,238,239", "220,221,222,223,252,253,254,255")
# The output of HPE's program for -R -c 32 -g 4,4,4, as NERSC's documentation shows it.
ORACLE = """\
# grid_order -R -Z -c 32 -g 4,4,4
# Region 3: 0,0,1 (0..63)
0,1,2,3,16,17,18,19,32,33,34,35,48,49,50,51,4,5,6,7,20,21,22,23,36,37,38,39,52,53,54,55
8,9,10,11,24,25,26,27,40,41,42,43,56,57,58,59,12,13,14,15,28,29,30,31,44,45,46,47,60,61,62,63
"""


def point(rank: int, shape: Sequence[int], major: str) -> tuple[int, ...]:
    lengths = shape if major == "C" else [*reversed(shape)]
    found = []
    for length in lengths:
        rank, own = divmod(rank, length)
        found.append(own)
    return tuple(found if major == "C" else reversed(found))


def test_the_output_of_hpe() -> None:
    assert written(GridOrder((4, 4, 4), (32,))) == ORACLE
    head, region, *lines = written(GridOrder((8, 8, 4), (128,))).splitlines()
    assert head == "# grid_order -R -Z -c 128 -g 8,8,4"
    assert region == "# Region 3: 0,0,1 (0..255)"
    for line, first, last in zip(lines, ARCHER2, ENDS, strict=True):
        assert line.startswith(first) and line.endswith(last) and line.count(",") == 127
    plain = "".join(ORACLE.splitlines(keepends=True)[2:])
    assert written(GridOrder((4, 4, 4), (32,)), quiet=True) == plain
    assert written(GridOrder((4, 4, 4), (32,)), per_line=64, quiet=True).count("\n") == 1


def test_cells_of_a_plane_along_each_curve() -> None:
    cells: dict[Curve, list[list[int]]] = {
        "Z": [[0, 1, 4, 5], [8, 9, 12, 13], [2, 3, 6, 7], [10, 11, 14, 15]],
        "P": [[0, 1, 4, 5], [8, 9, 12, 13], [10, 11, 14, 15], [2, 3, 6, 7]],
        "H": [[0, 1, 4, 5], [2, 3, 6, 7], [10, 11, 14, 15], [8, 9, 12, 13]],
    }
    for curve, wanted in cells.items():
        (region,) = regions(GridOrder((4, 4), (2, 2), "R", curve))
        assert (region.number, region.cut, region.cells) == (0, (0, 0), wanted)
    column = GridOrder((4, 2), (2, 2), "C", start=100, limit=106)
    assert order_of_grid(column) == [100, 101, 104, 105, 102, 103]
    assert "# Region 0: 0,0 (100..105)" in written(column)


def test_cells_that_do_not_divide_the_grid_come_last() -> None:
    found = regions(GridOrder((5, 4), (2, 3)))
    assert [(one.number, one.cut, len(one.cells)) for one in found] == [
        (0, (0, 0), 2),
        (1, (1, 0), 1),
        (2, (0, 1), 2),
        (3, (1, 1), 1),
    ]
    assert found[0].cells[0] == [0, 1, 2, 4, 5, 6]
    assert found[3].cells == [[19]]


def test_cells_go_up_in_the_dimensions_that_are_asked_for() -> None:
    usual = GridOrder((4, 4), (2, 2))
    turned = GridOrder((4, 4), (2, 2), along=(2,))
    assert order_of_grid(usual) == [0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15]
    assert order_of_grid(turned) == [0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15]
    assert order_of_grid(GridOrder((4, 4), (2, 2), along=(1, 2))) == order_of_grid(usual)
    assert written(turned).startswith("# grid_order -R -Z -c 2,2 -g 4,4 -o 2\n")


@settings(max_examples=80)
@given(
    st.lists(st.integers(1, 6), min_size=1, max_size=3),
    st.data(),
    st.sampled_from(["C", "R"]),
    st.sampled_from(["Z", "P", "H"]),
)
def test_every_grid_gives_a_permutation_whose_cells_are_boxes(
    shape: list[int], data: st.DataObject, major: str, curve: str
) -> None:
    most = len(shape)
    cell = data.draw(st.lists(st.integers(1, 4), min_size=most, max_size=most))
    grid = GridOrder(tuple(shape), tuple(cell), major, curve)  # type: ignore[arg-type]
    checked(order_of_grid(grid), math.prod(shape))
    for region in regions(grid):
        for ranks in region.cells:
            points = [point(rank, shape, major) for rank in ranks]
            spans = [sorted({at[axis] for at in points}) for axis in range(most)]
            assert sorted(points) == sorted(itertools.product(*spans))
            for span, length in zip(spans, cell, strict=True):
                assert span == [*range(span[0], span[0] + len(span))] and len(span) <= length


@pytest.mark.parametrize("curve", ["P", "H"])
@pytest.mark.parametrize("side", [(8, 8), (4, 4, 4), (2, 2, 2, 2)])
def test_cells_that_follow_each_other_touch(curve: Curve, side: tuple[int, ...]) -> None:
    order = order_of_grid(GridOrder(side, (1,) * len(side), "R", curve))
    points = [point(rank, side, "R") for rank in order]
    for one, other in itertools.pairwise(points):
        assert sum(abs(a - b) for a, b in zip(one, other, strict=True)) == 1


@pytest.mark.parametrize(
    ("shape", "cell", "told"),
    [
        ((4, 0), (2, 2), "-g 4,0: lengths are 1 or more"),
        ((4, 4), (0,), "-c 0: lengths are 1 or more"),
        ((4, 4), (2, 2, 2), "-c: a cell of 3 dimensions in a grid of 2; give 2"),
        ((2,) * 9, (2,), "-g: 9 dimensions; 8 are the most"),
        ((4096, 4096), (2, 2), "-g: more than"),
    ],
)
def test_bad_grids_are_told(shape: tuple[int, ...], cell: tuple[int, ...], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        order_of_grid(GridOrder(shape, cell))


@pytest.mark.parametrize("along", [(1, 3), (2, 2), (0,)])
def test_dimensions_that_there_are_not_are_told(along: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="give each dimension once, from 1 to 2, such as -o 2,1"):
        order_of_grid(GridOrder((4, 4), (2, 2), along=along))
