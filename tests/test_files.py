from __future__ import annotations

import os
from pathlib import Path

import pytest

from seatrial.files import open_regular, read_regular


def test_a_regular_file_is_read_to_its_limit(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"12345")
    assert read_regular(file, 5) == b"12345"
    with pytest.raises(OSError, match="more than"):
        read_regular(file, 4)


def test_a_fifo_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(OSError, match="FIFO"):
        open_regular(tmp_path / "fifo")


def test_a_folder_and_a_device_are_refused(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="folder"):
        open_regular(tmp_path)
    with pytest.raises(OSError, match="device"):
        open_regular(Path("/dev/zero"))


def test_a_link_is_followed_only_where_it_may_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    assert read_regular(tmp_path / "link", 1) == b"x"
    with pytest.raises(OSError):
        read_regular(tmp_path / "link", 1, follow=False)
