"""Entries as the walk of a purge gives them, made from plain values."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from seatrial.plugins.purge.policy import Policy, load_policy
from seatrial.plugins.purge.rules import DAY_NS

NOW = 20_000 * DAY_NS
COLUMNS = [
    (name, "i8") for name in ("ino", "size", "bytes", "atime", "mtime", "ctime", "uid", "gid",
                              "nlink", "folder", "kind")
]  # fmt: skip


class File(NamedTuple):
    """A file, last used some days before `NOW`."""

    path: str
    days: float = 100
    uid: int = 0
    gid: int = 0
    size: int = 4096
    kind: int = 0
    nlink: int = 1
    atime: float | None = None


class Entries(NamedTuple):
    """A `seatrial.plugins.purge.rules.Batch`."""

    entries: Any
    root: int
    folders: list[bytes]
    paths: list[bytes]

    @property
    def names(self) -> list[bytes]:
        return [path.rpartition(b"/")[2] for path in self.paths]


def batch_of(files: Sequence[File], root: int = 0) -> Entries:
    """Return files, whose paths are relative to a root, as one batch."""
    paths = [os.fsencode(each.path) for each in files]
    above = [path.rpartition(b"/")[0] for path in paths]
    folders = sorted(set(above))
    entries = np.zeros(len(files), dtype=COLUMNS)
    for i, each in enumerate(files):
        used = NOW - round(each.days * DAY_NS)
        read = used if each.atime is None else NOW - round(each.atime * DAY_NS)
        entries[i] = (i, each.size, each.size, read, used, used, each.uid, each.gid, each.nlink,
                      folders.index(above[i]), each.kind)  # fmt: skip
    return Entries(entries, root, folders, paths)


def policy_of(folder: Path, text: str, name: str = "purge.yaml") -> Policy:
    """Return the policy that a text says."""
    path = folder / name
    path.write_text(text)
    return load_policy(path)
