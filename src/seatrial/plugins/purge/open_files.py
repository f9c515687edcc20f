"""Which files the processes of this host have open, by ``/proc``: a purge may leave them."""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from seatrial.files import read_start

_EVERY_S = 30.0
_MOST_MAPS = 16 << 20
_MAP = re.compile(rb"^[0-9a-f]+-[0-9a-f]+ \S+ \S+ ([0-9a-f]+):([0-9a-f]+) ([0-9]+)", re.MULTILINE)


class OpenFiles:
    """The inodes of a device that are open, or in the memory of a process. Of other hosts, and of
    processes that may not be looked at, nothing is known, which is told once."""

    def __init__(self, device: int, tell: Callable[[str], None]) -> None:
        self._device, self._tell = device, tell
        self._again = 0.0
        self._told = False

    def fresh(self) -> list[int] | None:
        """Return the inodes; None where they were looked up just before."""
        if time.monotonic() < self._again:
            return None
        self._again = time.monotonic() + _EVERY_S
        found: set[int] = set()
        hidden = 0
        for process in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208 - names are asked for
            try:
                found.update(_descriptors(process, self._device))
                found.update(_maps(process, self._device))
            except PermissionError:
                hidden += 1
            except OSError:
                continue  # it has ended
        if hidden and not self._told:
            self._told = True
            processes = "1 process" if hidden == 1 else f"{hidden} processes"
            self._tell(
                f"not all open files are known: those of {processes} could not be looked at; "
                "root may look at most"
            )
        return sorted(found)


def _descriptors(process: str, device: int) -> Iterator[int]:
    folder = f"/proc/{process}/fd"
    for name in os.listdir(folder):  # noqa: PTH208 - names are asked for
        try:
            about = Path(folder, name).stat()
        except OSError:
            continue  # it was closed
        if about.st_dev == device and stat.S_ISREG(about.st_mode):
            yield about.st_ino


def _maps(process: str, device: int) -> Iterator[int]:
    data = read_start(f"/proc/{process}/maps", _MOST_MAPS).data
    own = f"{os.major(device):02x}:{os.minor(device):02x}".encode()
    for major, minor, inode in _MAP.findall(data):
        if major + b":" + minor == own and inode != b"0":
            yield int(inode)
