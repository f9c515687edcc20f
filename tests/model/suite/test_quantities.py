from __future__ import annotations

import pytest

from seatrial.model.expressions import ExpressionError
from seatrial.model.task_placement import asked_bytes, split_size


@pytest.mark.parametrize(
    ("written", "size"),
    [
        ("16GiB", 16 << 30),
        ("16 GB", 16 * 10**9),
        ("1.5G", 3 << 29),
        ("512M", 512 << 20),
        ("2 * n GiB", 6 << 30),
        ("(n + 1)GiB", 4 << 30),
        ("n MiB", 3 << 20),
        ("0.5 * node.memory_gib GiB", 32 << 30),
        ("100 kB", 100_000),
        ("4096 B", 4096),
    ],
)
def test_a_size_whose_number_may_be_an_expression(written: str, size: int) -> None:
    assert asked_bytes(written, "memory")({"n": 3, "node.memory_gib": 64.0}) == size


@pytest.mark.parametrize("written", ["", "GiB", "16", "n", "nGiB", "16 GiBs", "16 furlongs", "G G"])
def test_a_size_without_a_number_or_a_unit(written: str) -> None:
    with pytest.raises(ExpressionError):
        asked_bytes(written, "memory")({"G": "x"})


def test_the_parts_of_a_size() -> None:
    assert split_size(" 2 * n  GiB ") == ("2 * n", "GiB")
