"""The folder in which Seatrial keeps a few bytes for a user, outside of any folder of trials.

    replace_file(state_folder() / "alarm-1f2e", data)     # $XDG_STATE_HOME/seatrial, mode 0700

A name in /tmp can be guessed, so that another user of the host may make it first: a folder that is
not the user's own, or that others may enter, is not used.
"""

import contextlib
import errno
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from seatrial.account import home
from seatrial.files import make_folder, opened_folder


def state_folder() -> Path:
    """Return the folder, made if it is missing. Raises OSError where there is none that others
    cannot write."""
    for path in _candidates():
        with contextlib.suppress(OSError):
            make_folder(path, 0o700)
            with opened_folder(path) as folder:
                about = os.fstat(folder)
            if about.st_uid == os.getuid() and not about.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
                return path
    raise OSError(errno.EACCES, "there is no folder of your own: set XDG_STATE_HOME")


def _candidates() -> Iterator[Path]:
    named = os.environ.get("XDG_STATE_HOME", "")
    if named.startswith("/"):
        yield Path(named) / "seatrial"
    yield home() / ".local/state/seatrial"
    yield Path(tempfile.gettempdir()) / f"seatrial-{os.getuid()}"
