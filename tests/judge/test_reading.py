from __future__ import annotations

import hashlib
import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.escaping import plain, plain_line, plain_page
from seatrial.judge.reading import (
    Missing,
    TooLarge,
    Unreadable,
    head,
    read_text,
    sha256,
    size_of,
    tail,
)

from .helpers import sparse

GIB = 1 << 30


def test_lines_end_alike_and_bytes_that_are_no_text_are_replaced(tmp_path: Path) -> None:
    (tmp_path / "stdout").write_bytes(b"a\r\nb\rc\n\xff\x00d")
    assert read_text(tmp_path, "stdout", 100) == "a\nb\rc\n\ufffd\x00d"


def test_a_name_may_be_absolute_or_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("here")
    (tmp_path / "link").symlink_to("real")
    assert read_text(Path("/nowhere"), str(tmp_path / "real"), 10) == "here"
    assert read_text(tmp_path, "link", 10) == "here"


def test_the_limit_is_the_last_size_that_is_read(tmp_path: Path) -> None:
    (tmp_path / "stdout").write_text("12345")
    assert read_text(tmp_path, "stdout", 5) == "12345"
    with pytest.raises(TooLarge, match=r"stdout has 5 B; .* 4 B; .*`size_limit:`"):
        read_text(tmp_path, "stdout", 4)


def test_a_gigabyte_is_refused_unread(tmp_path: Path) -> None:
    sparse(tmp_path / "stdout", 8 * GIB)
    tracemalloc.start()
    with pytest.raises(TooLarge, match=r"8\.0 GiB"):
        read_text(tmp_path, "stdout")
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()


def test_a_file_that_claims_no_size_is_bounded_too(tmp_path: Path) -> None:
    with pytest.raises(TooLarge, match="status has"):  # /proc says 0 bytes
        read_text(Path("/proc/self"), "status", 10)


def test_what_is_missing_is_said_so(tmp_path: Path) -> None:
    for read in (read_text, sha256, size_of):
        with pytest.raises(Missing, match=r"^result is missing$"):
            read(tmp_path, "result")


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _loop(path: Path) -> None:
    path.symlink_to(path)


def _device(path: Path) -> None:
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize("make", [_fifo, _loop, _device, Path.mkdir])
def test_only_regular_files_are_read_and_nothing_waits(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    make(tmp_path / "stdout")
    for read in (read_text, sha256, size_of):
        with pytest.raises(Unreadable, match=r"^stdout "):
            read(tmp_path, "stdout")
    assert tail(tmp_path / "stdout", 10) is None


@pytest.mark.parametrize("name", ["a\0b", "\ud800", "x" * 5000, ""])
def test_a_name_that_is_none_is_unreadable(tmp_path: Path, name: str) -> None:
    with pytest.raises(Unreadable):
        read_text(tmp_path, name)


def test_sha256_in_constant_memory(tmp_path: Path) -> None:
    sparse(tmp_path / "big", 64 << 20)
    tracemalloc.start()
    found = sha256(tmp_path, "big")
    assert tracemalloc.get_traced_memory()[1] < 8 << 20
    tracemalloc.stop()
    digest = hashlib.sha256()
    for _ in range(64):
        digest.update(bytes(1 << 20))
    assert found == digest.hexdigest()


def test_tail_shows_the_end_and_no_half_character(tmp_path: Path) -> None:
    path = tmp_path / "stderr"
    path.write_bytes("grüße\n".encode())
    for limit, text in ((4, "ße\n"), (3, "e\n"), (1000, "grüße\n"), (0, "")):  # ß has two bytes
        assert tail(path, limit) == (text, 8)
    assert head(path, 2) == ("gr", 8)


def test_a_piece_says_whether_it_is_all(tmp_path: Path) -> None:
    sparse(tmp_path / "stderr", GIB)
    piece = tail(tmp_path / "stderr", 3)
    assert piece == ("\0\0\0", GIB)
    assert piece is not None and piece.cut(3) and not piece.cut(GIB)


@given(st.text())
def test_plain_text_cannot_move_a_terminal(text: str) -> None:
    shown = plain(text)
    assert all(c.isprintable() or c in "\n\t" for c in shown)
    assert plain_line(text).isprintable()
    if text.isprintable():
        assert shown == text


def test_plain_escapes_what_a_terminal_obeys() -> None:
    assert plain("\x1b[2J\tok\r\n\x9b\u202e") == "\\x1b[2J\tok\\r\n\\x9b\\u202e"


def test_what_is_longer_than_one_read_is_read_whole(tmp_path: Path) -> None:
    text = "0123456789" * 250_000
    (tmp_path / "stdout").write_text(text)
    assert read_text(tmp_path, "stdout", len(text)) == text


def test_a_page_keeps_its_lines_and_tabs_and_shows_controls() -> None:
    assert plain_page("a\tb\n\x1b[31mé\u202e") == "a\tb\n\\x1b[31mé\\u202e"
