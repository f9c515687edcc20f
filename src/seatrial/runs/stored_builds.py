"""The builds that trials share, for whoever looks after them.

    for build in stored(folder): ...     # with the trials that use it
    remove(build)                        # unless one does

Links are passed over: they may lead to a folder of anybody.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from seatrial.files import open_descriptor, opened_folder, read_regular, remove_file, remove_tree
from seatrial.runs.shared_builds import (
    LOCK,
    RECORD,
    USERS,
    SharedBuild,
    numbers_of,
    read_record,
)

MAX_MARK_BYTES = 1 << 16


class StoredBuild(NamedTuple):
    """A directory among the shared builds: its record (None: it is not published), the trials that
    use it, when it was made or last used (s since the epoch)."""

    place: Path
    record: SharedBuild | None
    users: list[str]
    used: float


def stored(folder: Path) -> Iterator[StoredBuild]:
    """Yield the shared builds of a folder."""
    with contextlib.suppress(FileNotFoundError):
        for entry in sorted(filter(_is_folder, folder.iterdir())):
            for number in sorted(numbers_of(entry)):
                if _is_folder(entry / str(number)):
                    yield _stored(entry, number)


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _stored(entry: Path, number: int) -> StoredBuild:
    place = entry / str(number)
    users, times = [], [place.stat().st_mtime]
    for mark in (entry / USERS).glob(f"{number}.*"):
        with contextlib.suppress(OSError, ValueError):  # ValueError: a NUL in the name
            times.append(mark.stat().st_mtime)
            link = Path(os.fsdecode(read_regular(mark, MAX_MARK_BYTES, follow=False)))
            if link.is_symlink() and link.resolve() == place.resolve():
                users.append(link.parent.parent.name)
    return StoredBuild(place, read_record(place), sorted(users), max(times))


def remove(build: StoredBuild) -> bool:
    """Remove a build that no trial uses. Returns False where one does by now, or one is being made
    or looked for. Raises OSError."""
    entry = build.place.parent
    lock = open_descriptor(entry / LOCK, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        number = int(build.place.name)
        if _stored(entry, number).users:
            return False
        remove_file(build.place / RECORD, missing_ok=True)  # it is not used while it goes
        with opened_folder(entry) as opened:
            remove_tree(build.place.name, at=opened)
        for mark in (entry / USERS).glob(f"{number}.*"):
            remove_file(mark, missing_ok=True)
        return True
    except BlockingIOError:
        return False
    finally:
        os.close(lock)
