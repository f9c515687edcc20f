"""The kind of file system that a path is on: whether SQLite's write-ahead log works there.

file_system(Path("trials/store.sqlite"))                  # "ext4"
"""

from __future__ import annotations

import os
from pathlib import Path

FIELDS_OF_MOUNT = 10

# On these, every process that has the file open is on this host, as SQLite's WAL needs.
LOCAL_FILE_SYSTEMS = frozenset(
    ("ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "bcachefs", "tmpfs", "overlay")
)


def file_system(path: Path) -> str:
    """Return the type of the file system that a path is on, such as ext4 or nfs4; "" when
    unknown."""
    here = os.path.realpath(path)
    best, kind = "", ""
    try:
        lines = Path("/proc/self/mountinfo").read_text(errors="replace").splitlines()
    except OSError:
        return ""
    for line in lines:
        fields = line.split(" ")
        if len(fields) < FIELDS_OF_MOUNT or "-" not in fields:
            continue
        point = fields[4].replace("\\040", " ")
        inside = here == point or here.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, kind = point, fields[fields.index("-") + 1]
    return kind
