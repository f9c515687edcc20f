"""The parts of a metric's name, and the order of names with sizes."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from seatrial.model.figures import Labelled, MetricValue, place_of
from seatrial.units import number_or_size, show_size

WORDS = st.from_regex(r"[A-Za-z][A-Za-z0-9 ().:/-]{0,12}", fullmatch=True)
LABELS = st.dictionaries(
    st.from_regex(r"[a-z]{1,8}", fullmatch=True), WORDS | st.integers(0, 2**60), max_size=4
)


@given(st.from_regex(r"[a-z_]{1,12}", fullmatch=True), LABELS)
def test_a_full_name_is_read_back(name: str, labels: dict[str, int | str]) -> None:
    full = MetricValue(name, 1.0, "us", "lower", labels=labels).full_name
    parts = Labelled.of(full)
    assert parts == (name, {label: str(value) for label, value in labels.items()})
    for label in labels:
        rest = {key: value for key, value in labels.items() if key != label}
        assert parts.without(label) == MetricValue(name, 1.0, "us", "lower", labels=rest).full_name


def test_names_are_ordered_by_size() -> None:
    sizes = ["0", "1", "2", "4", "16", "1000", "4KiB", "4097", "64K", "1M"]
    names = [f"latency{{benchmark=MPI Bcast,bytes={size}}}" for size in sizes]
    names = ["latency", *names, "latency{benchmark=MPI Bcast,bytes=all}", "latency_max{bytes=1}"]
    shuffled = random.Random(3).sample(names, len(names))
    assert sorted(shuffled, key=place_of) == names


@given(st.integers(0, 2**60))
def test_a_size_is_shown_without_rounding(size: int) -> None:
    assert number_or_size(show_size(size)) == size or size > 2**49


def test_what_is_no_size() -> None:
    for text in ("", "nan", "inf", "4 cats", "K", "5m", "1e400", "auto"):
        assert not number_or_size(text) >= 0, text
    assert [number_or_size(text) for text in ("4KiB", "2M", "10 kB", "8 B")] == [
        *(4096, 2 << 20, 10000, 8)
    ]
