"""The owner of a journal: the process that its lock file names.

A lock says who owns a journal where all hosts see it. Some file systems keep locks to one host
(Lustre with ``localflock``), or ignore them. So the name in the lock file counts as well, if the
owner gave a sign of life lately: it has just taken the lock, or touched its heartbeat.
"""

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path

from seatrial.files import file_clock, read_start
from seatrial.journal.clock import boot_id
from seatrial.lazy import regex

HEARTBEAT = "heartbeat"  # a driver touches it every 15 s
FRESH_SECONDS = 60.0
LONGEST_NAME = 400
MACHINE_ID = Path("/etc/machine-id")  # machine-id(5)

_NAME = regex(r"process (\d+) on (\S+)")


def own_name() -> str:
    """Return the name of this process as an owner: a line for people, and where it runs."""
    return f"seatrial, process {os.getpid()} on {os.uname().nodename}\n{_place()}\n"


def shown(name: str) -> str:
    """Return the name of an owner for people; "" for none."""
    return name.strip().partition("\n")[0].strip()


def _place() -> str:
    """Return what the processes have in common that this one can see: this boot of the kernel, and
    the namespace of process ids; and the id of the installation. The names of two hosts may be
    equal."""
    try:
        namespace = os.stat("/proc/self/ns/pid").st_ino  # noqa: PTH116
    except OSError:
        namespace = 0
    return f"boot {boot_id() or '-'} {namespace} {_machine_id()}"


def _machine_id() -> str:
    try:
        return read_start(MACHINE_ID, LONGEST_NAME).data.decode(errors="replace").strip() or "-"
    except OSError:
        return "-"


def is_gone(name: str) -> bool:
    """Return whether an owner of this name is a process that has ended: it would be seen here, or
    this host was booted since. Hosts may share an image, and so the id of the installation: their
    names differ then."""
    found = _NAME.search(name)
    if found is None:
        return False
    written, here = name.strip().partition("\n")[2].strip(), _place()
    same_name = found[2] == os.uname().nodename
    if written and written != here:
        return same_name and _is_earlier_boot(written.split(" "), here.split(" "))
    return (bool(written) or same_name) and not _alive(int(found[1]))


def _is_earlier_boot(written: Sequence[str], here: Sequence[str]) -> bool:
    """Return whether a place is of this installation, and of another boot, as far as both are
    known."""
    if len(written) != len(here):
        return False
    (_, boot, _, machine), (_, boot_here, _, machine_here) = written, here
    return machine == machine_here != "-" and "-" not in (boot, boot_here) and boot != boot_here


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
        state = Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()[:1]
    except (ProcessLookupError, FileNotFoundError, OverflowError):
        return False
    except OSError:
        return True  # it lives, under another user
    return state != [b"Z"]


def name_in(lock: Path) -> str:
    """Return the name in a lock file; "" where there is none."""
    try:
        return read_start(lock, LONGEST_NAME, follow=False).data.decode(errors="replace")
    except OSError:
        return ""


def last_sign(lock: Path) -> float | None:
    """Return how many seconds ago the owner gave a sign of life: it wrote its name into the lock
    file, or touched the heartbeat beside it. Both are compared with a file that is made now, as the
    file server may have a clock of its own. None where no file can be made."""
    if (now := file_clock(lock.parent)) is None:
        return None
    signs = []
    for path in (lock, lock.with_name(HEARTBEAT)):
        with contextlib.suppress(OSError):
            signs.append(path.lstat().st_mtime)
    return now - max(signs) if signs else None


def is_driving(lock: Path, name: str) -> bool:
    """Return whether the owner that a lock file names may be at work, though its lock is not seen:
    it is no process of here that has ended, and gave a sign of life lately."""
    if not shown(name) or name == own_name() or is_gone(name):
        return False
    age = last_sign(lock)
    return age is not None and age < FRESH_SECONDS
