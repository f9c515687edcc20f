"""Who runs Seatrial, and where this user's own files are."""

import getpass
import os
import pwd
from pathlib import Path


def user_name() -> str:
    """Return the name of the user, or the number of one without a name, as in a container."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def name_of(uid: int) -> str:
    """Return the name of a user of this host, or the number of one without a name here."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def account() -> str:
    """Return who runs this process: ``ann@login1``."""
    return f"{user_name()}@{os.uname().nodename}"


def home() -> Path:
    """Return the home folder of the user. One who has none has the folder that Debian's passwd
    gives to such users, /nonexistent."""
    found = at_home("~")
    return found if found.is_absolute() else Path("/nonexistent")


def at_home(written: str | os.PathLike[str]) -> Path:
    """Return a path with the user's home in place of ``~``. It stays as it is if there is no
    home."""
    return Path(os.path.expanduser(written))  # noqa: PTH111 - Path's raises where there is none
