from __future__ import annotations

import grp
import os
from pathlib import Path

import pytest

from seatrial import files
from seatrial.files import FileOrigin, close_to_others, origin_of_tree, read_owned, replace_file


def test_whose_a_file_is_tells_the_descriptor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    replace_file(file, b"x")
    assert read_owned(file, 1) == (b"x", FileOrigin())
    file.chmod(0o666)
    assert "others may write" in read_owned(file, 1)[1].stranger
    file.chmod(0o644)
    tmp_path.chmod(0o777)
    assert "others may write" in read_owned(file, 1)[1].stranger
    tmp_path.chmod(0o1777)
    assert read_owned(file, 1)[1].stranger == "", "nobody else may rename or remove it"
    other = os.getuid() + 1
    monkeypatch.setattr(os, "getuid", lambda: other)
    monkeypatch.setattr(files, "_are_of_files_made", lambda *_: False)
    if file.stat().st_uid == 0:  # everybody trusts root
        os.chown(file, 54321, -1)
    assert " belongs to " in read_owned(file, 1)[1].stranger
    (tmp_path / "link").symlink_to(file)
    with pytest.raises(OSError, match="link"):
        read_owned(tmp_path / "link", 1)
    with pytest.raises(OSError, match="more than"):
        read_owned(file, 0)


@pytest.mark.parametrize(
    ("name", "members", "alone"),
    [("me", [], True), ("me", ["me"], True), ("me", ["you"], False), ("astro", [], False)],
)
def test_what_a_group_may_write_is_the_users_if_nobody_else_is_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, members: list[str], alone: bool
) -> None:
    file = tmp_path / "file"
    replace_file(file, b"x")
    file.chmod(0o664)
    group = grp.struct_group((name, "x", 1, members))
    monkeypatch.setattr(grp, "getgrgid", lambda _: group)
    monkeypatch.setattr(files, "name_of", lambda _: "me")
    assert ("chmod go-w" not in read_owned(file, 1)[1].stranger) is alone


def test_a_group_without_a_name_is_the_users_by_its_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nameless(_: int) -> None:
        raise KeyError

    file = tmp_path / "file"
    replace_file(file, b"x")
    file.chmod(0o664)
    gid = file.stat().st_gid
    monkeypatch.setattr(grp, "getgrgid", nameless)
    monkeypatch.setattr(files, "is_own", lambda _: True)
    for uid, own in ((gid, True), (gid + 1, False)):
        monkeypatch.setattr(os, "getuid", lambda uid=uid: uid)
        monkeypatch.setattr(os, "getgid", lambda: gid)
        assert (read_owned(file, 1)[1].stranger == "") is own


def test_a_tree_is_the_users_if_all_in_it_is(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "a/b").mkdir(parents=True)
    (tree / "a/b/file").write_bytes(b"")
    (tree / "link").symlink_to("/etc")  # of mode 777, as all links are
    assert origin_of_tree(tree) == FileOrigin()
    for path in (tree / "a/b/file", tree / "a/b", tree):
        path.chmod(0o777)
        assert str(path) in origin_of_tree(tree).loose
    other = tmp_path / "other"
    other.write_bytes(b"")
    other.chmod(0o666)
    (tree / "link to a file").symlink_to(other)
    os.mkfifo(tree / "fifo")
    close_to_others(tree)
    assert origin_of_tree(tree) == FileOrigin()
    assert other.stat().st_mode & 0o022, "links are not followed"
    (tmp_path / "link").symlink_to(tree)
    with pytest.raises(OSError, match="directory"):
        origin_of_tree(tmp_path / "link")


def test_where_a_file_server_calls_the_user_by_another_number_the_own_files_are_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    replace_file(file, b"x")
    monkeypatch.setattr(files, "is_own", lambda about: False)
    assert read_owned(file, 1)[1] == FileOrigin()
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    if os.getuid() == 0:
        os.chown(file, 54321, -1)
        assert "belongs to" in read_owned(file, 1)[1].other
