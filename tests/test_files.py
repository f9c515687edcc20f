from __future__ import annotations

import os
from pathlib import Path

import pytest

from seatrial.files import (
    make_folder,
    open_regular,
    read_regular,
    remove_file,
    remove_tree,
    replace_file,
    touch,
    write_durably,
)


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


def modes(path: Path) -> int:
    return path.stat().st_mode & 0o7777


@pytest.mark.parametrize("kind", ["link", "fifo", "hard link", "nothing"])
def test_a_file_is_replaced_and_what_its_name_led_to_is_left_alone(
    tmp_path: Path, kind: str
) -> None:
    other, name = tmp_path / "other", tmp_path / "name"
    other.write_bytes(b"mine")
    if kind == "link":
        name.symlink_to(other)
    elif kind == "fifo":
        os.mkfifo(name)
    elif kind == "hard link":
        name.hardlink_to(other)
    mask = os.umask(0)
    try:
        replace_file(name, b"new")
    finally:
        os.umask(mask)
    assert (name.read_bytes(), other.read_bytes()) == (b"new", b"mine")
    assert modes(name) == 0o644 and not name.is_symlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["name", "other"]


def test_a_linked_folder_is_written_to_only_where_it_may_be(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder")
    with pytest.raises(OSError, match="directory"):
        replace_file(tmp_path / "link/file", b"")
    with pytest.raises(OSError, match="directory"):
        remove_file(tmp_path / "link/file", missing_ok=True)
    replace_file(tmp_path / "link/file", b"", follow=True)
    assert (tmp_path / "folder/file").exists()


@pytest.mark.parametrize("kind", ["link", "fifo"])
def test_what_is_no_file_is_not_touched_or_written(tmp_path: Path, kind: str) -> None:
    name = tmp_path / "name"
    name.symlink_to(tmp_path / "made") if kind == "link" else os.mkfifo(name)
    with pytest.raises(OSError, match="link" if kind == "link" else "FIFO"):
        touch(name)
    with pytest.raises(OSError, match="link" if kind == "link" else "FIFO"):
        write_durably(name, b"")
    assert not (tmp_path / "made").exists()
    name.unlink()
    touch(name)
    assert name.read_bytes() == b""


def test_a_tree_is_removed_and_nothing_outside_of_it(tmp_path: Path) -> None:
    keep = tmp_path / "keep"
    keep.mkdir()
    (keep / "file").write_bytes(b"mine")
    tree = tmp_path / "tree"
    (tree / "a/b").mkdir(parents=True)
    (tree / "a/file").write_bytes(b"")
    (tree / "a/link").symlink_to(keep)
    os.mkfifo(tree / "fifo")
    os.mkfifo(tree / "a/b/fifo")
    remove_tree(tree)
    assert not tree.exists() and (keep / "file").read_bytes() == b"mine"
    for kind in ("link", "fifo", "missing"):
        name = tmp_path / kind
        if kind == "link":
            name.symlink_to(keep)
        elif kind == "fifo":
            os.mkfifo(name)
        else:
            with pytest.raises(FileNotFoundError):
                remove_tree(name)
            continue
        remove_tree(name)
        assert not os.path.lexists(name)
    assert (keep / "file").exists()


def test_folders_are_made_that_others_cannot_write(tmp_path: Path) -> None:
    mask = os.umask(0)
    try:
        make_folder(tmp_path / "a/b/c")
        make_folder(tmp_path / "a/b/c")
    finally:
        os.umask(mask)
    assert [modes(tmp_path / name) & 0o777 for name in ("a", "a/b", "a/b/c")] == [0o755] * 3
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError):
        make_folder(tmp_path / "file")
