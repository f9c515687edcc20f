from __future__ import annotations

import re
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest

from seatrial.judge import isolated
from seatrial.judge.isolated import PAGE, SearchFailed, SearchTookLong, find_all, find_placed
from seatrial.judge.search_process import LONGEST_MATCH


@pytest.mark.parametrize("padding", [0, PAGE])
def test_short_and_long_text_are_searched_alike(padding: int) -> None:
    text = "x 1\n" + "é" * padding + "\nx 2\n\ufffd\n"
    found = find_all([r"^x (\d)$", r"(nothing)?", r"\d", r"\ufffd"], text)
    assert found[0] == ["1", "2"]
    assert set(found[1]) == {""}
    assert found[2:] == [["1", "2"], ["\ufffd"]]


@pytest.mark.parametrize("padding", [0, PAGE])
def test_a_carriage_return_ends_a_line(padding: int) -> None:
    """Progress bars write them; lines are counted as editors count them."""
    text = " " * padding + "\nat 10 %\rat 90 %\r\rresult: 42.5 GB/s\r\nresult: 43 GB/s\r\n"
    assert find_all([r"^result: (\S+) GB/s$"], text) == [["42.5", "43"]]
    assert find_placed(r"^result: (\S+)", text) == [("42.5", 2), ("43", 3)]
    assert find_all([r"at 90 %\r\r(\w+)"], text) == [["result"]]  # who asks for it gets it
    assert find_all(["at 90 %\r\r(\\w+)"], text) == [["result"]]  # so YAML reads double quotes


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"^steps ([a-z]+)*$", f"steps {'a' * 60}!"),
        (r"(.*)(.*)(.*)(.*)y", "a" * PAGE),
        (r"\s*\s*\s*x", " " * PAGE),
    ],
)
def test_the_main_thread_is_held_up_for_a_moment_only(pattern: str, text: str) -> None:
    before = signal.getsignal(signal.SIGALRM)
    with pytest.raises(SearchTookLong):
        find_all([pattern], text)
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_in_other_threads_such_a_search_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolated, "SEARCH_SECONDS", 0.3)
    with ThreadPoolExecutor(1) as threads:
        found = threads.submit(find_all, [r"^steps ([a-z]+)*$"], f"steps {'a' * 60}!")
        assert isinstance(found.exception(), SearchFailed)


def test_high_counts_are_not_tried_in_the_main_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python would not look at signals before such a repetition has ended."""
    monkeypatch.setattr(isolated, "SEARCH_SECONDS", 0.3)
    with pytest.raises(SearchFailed):
        find_all([r"a{1,4000}a*b"], "a" * PAGE)


@pytest.mark.parametrize("padding", [0, PAGE])
def test_matches_are_bounded_in_number_and_length(padding: int) -> None:
    found = find_all([r"(\S+)"], "a" * 500 + " b c" + " " * padding, most=2)
    assert found == [["a" * LONGEST_MATCH, "b"]]


def test_a_search_that_would_never_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolated, "SEARCH_SECONDS", 0.3)
    with pytest.raises(SearchFailed, match=r"took longer than 0\.3 s .* more specific"):
        find_all([r"(\d+) MB/s"], "1" * 1_000_000)


def test_a_pattern_that_is_none() -> None:
    with pytest.raises(re.error):
        find_all(["("], "")
