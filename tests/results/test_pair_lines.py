"""Pairs in the output of the probe pingpong."""

from __future__ import annotations

import pytest

from seatrial.results.bands import END, pair_lines

LINE = "pair 0 5 nodes n001 n002 cpus 0 1 latency 0.42 us bandwidth 9211.0 MiB/s\n"


def test_ends_and_figures_of_a_pair() -> None:
    (one,) = pair_lines(f"seed 1\n{LINE}{END}\n")
    assert one == ((0, 5), ("n001", "n002"), (0, 1), 0.42, 9211.0, None, None)
    assert pair_lines(f"0: seed 1\n0: {LINE}0: {END}\n") == [one], "as srun --label prints them"


def test_intervals_of_figures() -> None:
    line = LINE.replace(" us ", " us (0.41..0.44) ").replace("MiB/s", "MiB/s (9190.2..9240.1)")
    (one,) = pair_lines(f"{line}{END}\n")
    assert one.latency_interval == (0.41, 0.44)
    assert one.bandwidth_interval == (9190.2, 9240.1)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (LINE, "closing line"),
        (f"{END}\n", "no line `pair ...`"),
        (f"{LINE}pair 1 2\n{END}\n", "line 2 has no figures of a pair: pair 1 2"),
        (LINE.replace("0.42", "0.00") + END, "line 1"),
    ],
)
def test_what_is_no_whole_output(text: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        pair_lines(text)
