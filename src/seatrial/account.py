"""Who runs Seatrial."""

import getpass
import os


def user_name() -> str:
    """Return the name of the user, or the number of one without a name, as in a container."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
