"""Who runs Seatrial."""

import getpass
import os


def user_name() -> str:
    """Return the name of the user, or the number of one without a name, as in a container."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def account() -> str:
    """Return who runs this process: ``ann@login1``."""
    return f"{user_name()}@{os.uname().nodename}"
