"""Who can have written a file or a folder: before what it names is run, or trusted.

    data, origin = read_owned(folder / "trial.json", 64 << 20)
    if origin.stranger: ...                              # "/scratch/trials/x belongs to ann"
    origin_of_tree(build).stranger

Owners and modes are those of what is open, so that nobody can put another file in its place in
between. Root is trusted by everybody, and a group in which the user is alone counts as the user.
"""

import contextlib
import errno
import grp
import os
import stat
from pathlib import Path
from typing import NamedTuple

from seatrial.account import name_of
from seatrial.files import open_descriptor, opened_folder

_OF_OTHERS = stat.S_IWGRP | stat.S_IWOTH


class FileOrigin(NamedTuple):
    """Who can have written something, in words. ``other``: that it belongs to another user, or "".
    ``loose``: that others may write it, or ""."""

    other: str = ""
    loose: str = ""

    @property
    def stranger(self) -> str:
        """Why it may be another user's doing; "" where only the user, or root, can have written
        it."""
        return self.other or self.loose


def is_own(about: os.stat_result) -> bool:
    """Return whether something belongs to the user, or to root."""
    return about.st_uid in (os.getuid(), 0)


def others_may_write(about: os.stat_result) -> bool:
    """Return whether its mode lets others write something: all, or a group in which the user is not
    alone."""
    if about.st_mode & stat.S_IWOTH:
        return True
    return bool(about.st_mode & stat.S_IWGRP) and not _is_alone_in(about.st_gid)


def _is_alone_in(gid: int) -> bool:
    """Return whether a group is the user's own, as many systems make one for each user: it has the
    user's name, or number where it has no name, and no other member."""
    try:
        group = grp.getgrgid(gid)
    except KeyError:
        return gid == os.getgid() == os.getuid()
    name = name_of(os.getuid())
    return group.gr_name == name and not set(group.gr_mem) - {name}


def origin_of(descriptor: int, path: Path | str) -> FileOrigin:
    """Return who can have written the file or folder that is open, and has this path."""
    return origin_by(os.fstat(descriptor), path)


def origin_by(about: os.stat_result, path: Path | str) -> FileOrigin:
    """Return who can have written what is at a path, by its status."""
    other = "" if is_own(about) else f"{path} belongs to {name_of(about.st_uid)}"
    sticky = stat.S_ISDIR(about.st_mode) and about.st_mode & stat.S_ISVTX
    loose = others_may_write(about) and not sticky and not stat.S_ISLNK(about.st_mode)
    return FileOrigin(other, f"others may write {path}: `chmod go-w` it" if loose else "")


def read_owned(path: Path, limit: int) -> tuple[bytes, FileOrigin]:
    """Return the bytes of a regular file that has at most ``limit``, and whose they are: by the
    very descriptors of the file, and of its folder. Its name is no link. Raises OSError."""
    with opened_folder(path.parent, follow=True) as folder:
        descriptor = open_descriptor(path.name, os.O_RDONLY | os.O_NOFOLLOW, at=folder)
        with os.fdopen(descriptor, "rb") as file:
            above, own = origin_of(folder, path.parent), origin_of(descriptor, path)
            other = above.other or own.other
            if other and _are_of_files_made(folder, descriptor):
                other = ""
            data = file.read(limit + 1)
    if len(data) > limit:
        raise OSError(errno.EFBIG, f"it has more than {limit >> 20} MiB", str(path))
    return data, FileOrigin(other, above.loose or own.loose)


def _are_of_files_made(folder: int, file: int) -> bool:
    """Return whether an open folder and file belong to whoever a file server says that makes files
    there now: it may call the user, or root, by another number."""
    name = f".owner-{os.getpid()}"
    try:
        made = open_descriptor(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, at=folder)
        try:
            owners = {os.fstat(each).st_uid for each in (folder, file, made)}
        finally:
            os.close(made)
            os.unlink(name, dir_fd=folder)
    except OSError:
        return False
    return len(owners) == 1


def origin_of_tree(path: Path) -> FileOrigin:
    """Return who can have written a folder, or anything in it. Its own name is no link. Raises
    OSError."""
    with opened_folder(path) as folder:
        return _origin_of_tree(folder, path)


def _origin_of_tree(folder: int, path: Path) -> FileOrigin:
    found = origin_of(folder, path)
    with os.scandir(folder) as entries:
        for entry in entries:
            if found.stranger:
                return found
            about = entry.stat(follow_symlinks=False)
            if stat.S_ISDIR(about.st_mode):
                with opened_folder(entry.name, at=folder) as below:
                    found = _origin_of_tree(below, path / entry.name)
            else:
                found = origin_by(about, path / entry.name)
    return found


def require_own(top: Path, path: Path) -> None:
    """Take from others the right to write in the folders from ``top`` down to ``path``. Raises
    OSError where one of them, or a link of its name, belongs to another user, who could put
    something else in the place of what is made there."""
    for folder in (path, *path.parents):
        with opened_folder(folder, follow=True) as opened:
            link = origin_by(folder.lstat(), folder)
            if other := link.other or origin_of(opened, folder).other:
                raise PermissionError(errno.EPERM, f"{other}; see to that", str(folder))
            with contextlib.suppress(PermissionError):  # it is root's
                _take_right(opened)
        if folder == top:
            return


def close_to_others(path: Path) -> None:
    """Take the right to write from others, of a file or of a folder and all in it, the user's own:
    copies keep the modes of their sources. Links are not followed. Raises OSError."""
    try:
        with opened_folder(path) as folder:
            _close_to_others(folder)
    except NotADirectoryError:
        with os.fdopen(open_descriptor(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
            _take_right(file.fileno())


def _close_to_others(folder: int) -> None:
    _take_right(folder)
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                with opened_folder(entry.name, at=folder) as below:
                    _close_to_others(below)
            elif entry.stat(follow_symlinks=False).st_mode & _OF_OTHERS and entry.is_file():
                with contextlib.suppress(OSError):  # ``origin_of_tree`` tells of it
                    how = os.O_RDONLY | os.O_NOFOLLOW
                    with os.fdopen(open_descriptor(entry.name, how, at=folder), "rb") as file:
                        _take_right(file.fileno())


def _take_right(descriptor: int) -> None:
    mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
    if mode & _OF_OTHERS:
        with contextlib.suppress(PermissionError):  # on a file system that has no modes
            os.fchmod(descriptor, mode & ~_OF_OTHERS)
