"""The location of a store: a file, or a database of a PostgreSQL server.

    shown(Path("trials/store.sqlite"))                        # "trials/store.sqlite"
    shown("postgresql://ana:secret@db/seatrial")              # "postgresql://ana@db/seatrial"

A URL may hold a password. Whatever people see goes through ``shown``.
"""

import os
import re
from pathlib import Path

from seatrial.errors import StoreError, UsageError

_SCHEME = r"[a-z][a-z0-9+.-]*"
_NAME = r"[\w./~+-]+"
_HARMLESS = r"(?:host|port|user|dbname)=[^&]*"

Location = Path | str
"""A file's path, or the URL of a PostgreSQL database."""


class NoStore(StoreError, UsageError):
    """The location is no store and cannot become one: the user's input is wrong."""


def shown(location: Location) -> str:
    """Return the location without a password, however oddly the URL is written."""
    if isinstance(location, Path):
        return str(location)
    scheme, there, rest = location.partition("://")
    if not there or not re.fullmatch(_SCHEME, scheme):
        return location if re.fullmatch(_NAME, location) else "what was given"
    if scheme == "postgres":
        scheme = "postgresql"
    front, _, query = rest.partition("?")
    if "@" in query and "@" not in front:  # a password with a question mark in it
        front, query = query.rpartition("@")[2], ""
    credentials, at, place = front.rpartition("@")
    user = credentials.partition(":")[0]
    address, slash, database = place.partition("/")
    words = "&".join(re.findall(_HARMLESS, query))
    path = f"{_without_odd_port(address)}{slash}{database}"
    return f"{scheme}://{user}{at}{path}" + (f"?{words}" if words else "")


def _without_odd_port(address: str) -> str:
    """Return an address without what is no port: perhaps a password whose host was forgotten."""
    host, colon, port = address.rpartition(":")
    return host if colon and not port.isdigit() and not address.endswith("]") else address


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
