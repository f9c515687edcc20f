"""All opening, writing and removing below folders that others may write, such as folders of trials.
A name there may have become a FIFO, for which whoever opens it waits, a device, a link to
elsewhere, larger than memory, or somebody else's.

    with open_regular(folder / "journal.jsonl") as file: ...
    data = read_regular(folder / "trial.json", 64 << 20)
    write_durably(folder / "trial.json", data); sync_folder(folder)
    replace_file(folder / "alarm", data)                             # links are not followed
    remove_tree(folder)

What is refused is an OSError, as for a file that cannot be read for any other reason. What is made
can be written by its owner alone, whatever the umask allows to others, unless the caller says so.
``file_origin.py`` tells whose a file is.
``tools/check_opens.py`` finds calls elsewhere that open or remove by themselves.
"""

import contextlib
import errno
import grp
import os
import shutil
import stat
import threading
from collections.abc import Iterator, Sequence
from io import BufferedReader, BufferedWriter
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from seatrial.account import name_of

SMALLEST_ROOM = 65536  # bytes: less is taken for a full file system
SYNCED_AT_ONCE = 8
CHUNK = 1 << 20
SAFE_FOLDER = 0o755  # modes of what others may read and not write
SAFE_FILE = 0o644

_NO_FILE = "it is a FIFO, socket or device, no regular file"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def open_regular(path: Path, *, follow: bool = True) -> BufferedReader:
    """Open a regular file for reading. ``follow``: the name itself may be a link."""
    flags = os.O_RDONLY if follow else os.O_RDONLY | os.O_NOFOLLOW
    return os.fdopen(open_descriptor(path, flags), "rb")


def open_descriptor(
    path: Path | str, flags: int, mode: int = 0o644, *, at: int | None = None
) -> int:
    """Open a regular file and return its descriptor. ``flags`` and ``mode`` are those of
    ``os.open``; ``at`` is the open folder of a name. A link is not followed to what is written."""
    if flags & (os.O_WRONLY | os.O_RDWR):
        flags |= os.O_NOFOLLOW
    try:
        how = flags | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
        descriptor = os.open(path, how, mode, dir_fd=at)
    except OSError as error:
        if error.errno == errno.ENXIO:
            raise OSError(errno.EINVAL, _NO_FILE, str(path)) from error  # a FIFO without a reader
        if error.errno == errno.ELOOP and flags & os.O_NOFOLLOW:
            raise OSError(errno.ELOOP, "it is a link, and is not followed", str(path)) from error
        raise
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            reason = "it is a folder, no regular file" if stat.S_ISDIR(mode) else _NO_FILE
            raise OSError(errno.EINVAL, reason, str(path))
        return descriptor
    except BaseException:
        os.close(descriptor)
        raise


class FileStart(NamedTuple):
    """The first bytes of a file, and the size of all of it."""

    data: bytes
    size: int


def read_start(
    path: Path | str, limit: int, *, follow: bool = True, whole: bool = False
) -> FileStart:
    """Return the first ``limit`` bytes of a regular file, in few calls of the system. ``whole``: of
    a file that has more, nothing is read."""
    flags = os.O_RDONLY if follow else os.O_RDONLY | os.O_NOFOLLOW
    descriptor = open_descriptor(path, flags)
    try:
        size = os.fstat(descriptor).st_size
        if whole and size > limit:
            return FileStart(b"", size)
        data = os.read(descriptor, min(limit + whole, size + 1))
        while len(data) != size and len(data) < limit + whole:  # it grows, or is read in parts
            if not (more := os.read(descriptor, min(limit + whole - len(data), CHUNK))):
                break
            data += more
        return FileStart(data, max(size, len(data)))  # it may have grown meanwhile
    finally:
        os.close(descriptor)


def read_regular(path: Path, limit: int, *, follow: bool = True) -> bytes:
    """Return the bytes of a regular file that has at most ``limit``."""
    data, size = read_start(path, limit, follow=follow, whole=True)
    if size > limit:
        raise OSError(errno.EFBIG, f"it has more than {limit >> 20} MiB", str(path))
    return data


# ---- folders, by their descriptors ----------------------------------------------------------


def open_folder(path: Path | str, *, at: int | None = None, follow: bool = False) -> int:
    """Open a folder and return its descriptor. ``follow``: its own name may be a link. Raises
    OSError."""
    return os.open(path, _FOLDER if follow else _FOLDER | os.O_NOFOLLOW, dir_fd=at)


@contextlib.contextmanager
def opened_folder(
    path: Path | str, *, at: int | None = None, follow: bool = False
) -> Iterator[int]:
    """Have a folder open while the block runs. Raises OSError."""
    descriptor = open_folder(path, at=at, follow=follow)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def names_in(folder: int) -> list[str]:
    """Return the names in an open folder. Raises OSError."""
    with os.scandir(folder) as entries:
        return [entry.name for entry in entries]


def open_to_write(path: Path, *, append: bool = False, mode: int = SAFE_FILE) -> BufferedWriter:
    """Open a regular file, made if it is missing, to write it anew or to append to it. Raises
    OSError."""
    how = os.O_APPEND if append else os.O_TRUNC
    return os.fdopen(open_descriptor(path, os.O_WRONLY | os.O_CREAT | how, mode), "wb")


def make_folder(path: Path, mode: int = SAFE_FOLDER) -> None:
    """Make a folder, with those above it, unless it is there. Raises OSError."""
    try:
        path.mkdir(mode)
    except FileNotFoundError:
        make_folder(path.parent)
        path.mkdir(mode, exist_ok=True)
    except FileExistsError:
        if not path.is_dir():
            raise


def replace_file(
    path: Path, data: bytes, mode: int = SAFE_FILE, *, exact: bool = False, follow: bool = False
) -> None:
    """Write a file under another name, and rename it: it appears whole, in the place of whatever
    has its name. ``exact``: its mode is this one, whatever the umask. ``follow``: the name of its
    folder may be a link. Raises OSError."""
    part = f".{path.name}.{os.getpid()}.part"
    with opened_folder(path.parent, follow=follow) as folder:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(part, dir_fd=folder)
        try:
            how = os.O_WRONLY | os.O_CREAT | os.O_EXCL
            with os.fdopen(open_descriptor(part, how, mode, at=folder), "wb") as file:
                file.write(data)
                if exact:
                    os.fchmod(file.fileno(), mode)
            os.rename(part, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(part, dir_fd=folder)
            raise


def touch(path: Path) -> None:
    """Set the times of a regular file to now; it is made if it is missing. Raises OSError."""
    descriptor = open_descriptor(path, os.O_WRONLY | os.O_CREAT, SAFE_FILE)
    try:
        os.utime(descriptor)
    finally:
        os.close(descriptor)


def remove_file(path: Path, *, missing_ok: bool = False, follow: bool = False) -> None:
    """Remove a name that is no folder. ``follow``: the name of its folder may be a link. Raises
    OSError."""
    try:
        with opened_folder(path.parent, follow=follow) as folder:
            os.unlink(path.name, dir_fd=folder)
    except FileNotFoundError:
        if not missing_ok:
            raise


def remove_tree(path: Path | str, *, at: int | None = None) -> None:
    """Remove a folder with all that is in it, or what is no folder. Links are not followed, and
    nothing but folders is opened. What can be removed is, before the first error is raised: an
    OSError."""
    try:
        folder = open_folder(path, at=at)
    except OSError as error:
        if error.errno not in (errno.ENOTDIR, errno.ELOOP):
            raise
        os.unlink(path, dir_fd=at)
        return
    failure = None
    try:
        with os.scandir(folder) as entries:
            found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
        for name, is_folder in found:
            try:
                remove_tree(name, at=folder) if is_folder else os.unlink(name, dir_fd=folder)
            except FileNotFoundError:
                pass
            except OSError as error:
                failure = failure or error
    finally:
        os.close(folder)
    if failure is not None:
        raise failure
    os.rmdir(path, dir_fd=at)


# Errors that say something about the host, and nothing about the file or the program.
_HOST_ERRORS = frozenset(
    (
        errno.ENOSPC,
        errno.EDQUOT,
        errno.EIO,
        errno.EROFS,
        errno.ESTALE,
        errno.EAGAIN,
        errno.ENOMEM,
        errno.EMFILE,
        errno.ENFILE,
    )
)


def is_of_host(error: OSError) -> bool:
    """Return whether an error is of the host: no space, quota, memory, processes or open files
    left, or a file system that fails."""
    if isinstance(error, shutil.Error) and isinstance(error.args[0], list):
        # of a folder: (source, target, reason) of each file
        texts = {os.strerror(number) for number in _HOST_ERRORS}
        return any(text in str(reason) for _, _, reason in error.args[0] for text in texts)
    return error.errno in _HOST_ERRORS


def is_full(path: Path) -> bool:
    """Return whether the file system of a path has no room for another file."""
    try:
        room = os.statvfs(path)
    except OSError:
        return False
    return room.f_bavail * room.f_frsize < SMALLEST_ROOM or (room.f_files > 0 and not room.f_favail)


def file_clock(folder: Path) -> float | None:
    """Return the present (seconds since the epoch) by the clock that gives files in a folder their
    times, which may be the file server's; None where no file can be made there. A file is made for
    that, and removed."""
    probe = f".clock-{os.uname().nodename}-{os.getpid()}"
    with contextlib.suppress(OSError), opened_folder(folder, follow=True) as at:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        descriptor = open_descriptor(probe, flags, SAFE_FILE, at=at)
        try:
            return os.fstat(descriptor).st_mtime
        finally:
            os.close(descriptor)
            os.unlink(probe, dir_fd=at)
    return None


def is_utf8(name: str) -> bool:
    """Return whether the name of a file, as the system gives it, is UTF-8."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def write_durably(path: Path, data: bytes, mode: int = SAFE_FILE) -> None:
    """Write a file, and wait until its content is on the disk itself. ``sync_folder`` does the same
    for its name. Raises OSError."""
    with open_to_write(path, mode=mode) as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def sync_files(paths: Sequence[str]) -> None:
    """Wait until these files are on the disk itself, a few at a time: file systems write them
    together then. A file that is not there, or that cannot be synced, is left out."""
    if paths:
        number = min(SYNCED_AT_ONCE, len(paths))
        shares = [paths[first::number] for first in range(number)]
        threads = [threading.Thread(target=_sync_each, args=(share,)) for share in shares]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def _sync_each(paths: Sequence[str]) -> None:
    for path in paths:
        with contextlib.suppress(OSError, ValueError):  # ValueError: a NUL in the name
            descriptor = open_descriptor(path, os.O_RDONLY)
            try:
                os.fdatasync(descriptor)
            finally:
                os.close(descriptor)


def sync_folder(path: Path) -> None:
    """Wait until the names in a folder are on the disk itself. Raises OSError."""
    with opened_folder(path, follow=True) as descriptor:
        try:
            os.fsync(descriptor)
        except OSError as error:
            if error.errno != errno.EINVAL:  # a file system that has no such thing
                raise


# ---- file origin ---------------------------------------------------------------------------------
#
# Who can have written a file or a folder: before what it names is run, or trusted.
#
#     data, origin = read_owned(folder / "trial.json", 64 << 20)
#     if origin.stranger: ...                              # "/scratch/trials/x belongs to ann"
#     origin_of_tree(build).stranger
#
# Owners and modes are those of what is open, so that nobody can put another file in its place in
# between. Root is trusted by everybody, and a group in which the user is alone counts as the user.


_OF_OTHERS = stat.S_IWGRP | stat.S_IWOTH


class FileOrigin(Struct, frozen=True):
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
