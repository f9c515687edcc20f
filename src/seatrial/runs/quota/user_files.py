"""Files that ``job_submit.lua`` reads: one for each user who has jobs to be refused, or none.

    write_filter(folder)                           # job_submit.lua
    write_user(folder, 1000, limits, now, 3600)    # folder/users/1000

A file begins with its version and the second (since the epoch) until which it counts. A line for
each limit follows (name, least nodes, partitions, accounts, sentence), then ``end``.
"""

from collections.abc import Sequence
from pathlib import Path

from seatrial.errors import UsageError
from seatrial.escaping import lua_text
from seatrial.files import read_start
from seatrial.rules.submit_rules import SubmitLimit

USERS = "users"
MAX_FILE = 1 << 20  # bytes
_TEMPLATE = Path(__file__).parent / "job_submit.lua"


def write_filter(folder: Path) -> Path:
    """Write ``job_submit.lua`` for a folder of users' files, and return it. Raises UsageError."""
    literal = lua_text(str(folder.resolve() / USERS))
    target = folder / "job_submit.lua"
    try:
        (folder / USERS).mkdir(parents=True, exist_ok=True)
        target.write_text(_TEMPLATE.read_text().replace("@USERS@", literal))
    except OSError as error:
        raise _unwritable(folder, error) from error
    return target


def user_text(limits: Sequence[SubmitLimit], until_s: int) -> str:
    """Return the text of a user's file."""
    lines = [f"seatrial-quota\t1\t{until_s}"]
    for each in limits:
        message = " ".join(each.message.split())
        lists = ",".join(each.partitions) or "*", ",".join(each.accounts) or "*"
        lines.append("\t".join(["refuse", each.name, str(each.nodes_from), *lists, message]))
    return "\n".join([*lines, "end", ""])


def write_user(folder: Path, uid: int, limits: Sequence[SubmitLimit], until_s: int) -> None:
    """Write a user's file at once: slurmctld reads the old or the new one. Raises UsageError."""
    target = folder / USERS / str(uid)
    fresh = target.with_name(f".{uid}.new")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        fresh.write_text(user_text(limits, until_s))
        fresh.replace(target)
    except OSError as error:
        raise _unwritable(folder, error) from error


def was_limited(folder: Path, uid: int) -> bool:
    """Return whether the file of a user has limits, stale or not."""
    try:
        data = read_start(folder / USERS / str(uid), MAX_FILE, follow=False).data
    except OSError:
        return False
    return any(line.startswith(b"refuse\t") for line in data.splitlines())


def _unwritable(folder: Path, error: OSError) -> UsageError:
    return UsageError(f"{folder}: cannot be written: {error.strerror}; name another folder")
