"""The settings of users and sites, for what a command line does not name.

    setting("machine")                  # "frost", "" where neither file names one
    origin("machine")                   # ("frost", "~/.config/seatrial/config.yaml:2")

A file is ``~/.config/seatrial/config.yaml`` (the user's) or ``/etc/seatrial/config.yaml`` (the
site's). The user's comes first; a command line and the variables ``SEATRIAL_...`` come before both.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from seatrial.account import home
from seatrial.model.documents import Faults, decode_partly, read
from seatrial.model.file_model import FileModel, doc

SITE_CONFIG = Path("/etc/seatrial/config.yaml")


def user_config() -> Path:
    """Return the path of the user's file."""
    return home() / ".config/seatrial/config.yaml"


def setting(key: str) -> str:
    """Return a setting of the user, else of the site; "" where neither has it. Raises
    InvalidFiles."""
    return origin(key)[0]


def origin(key: str) -> tuple[str, str]:
    """Return a setting, and the file and line that have it; both "" where neither file has it.
    Raises InvalidFiles."""
    return next(_found(key), ("", ""))


def _found(key: str) -> Iterator[tuple[str, str]]:
    """Yield the values of a setting, the user's before the site's."""
    for path in (user_config(), SITE_CONFIG):
        if not path.is_file():
            continue
        faults = Faults()
        node = read(path, faults)
        settings = decode_partly(node, Settings, faults) if node is not None else None
        faults.raise_any()
        if node is not None and settings is not None and (value := getattr(settings, key)):
            yield str(value), str(node.place_of(key))


# ---- settings file -------------------------------------------------------------------------------
#
# The shape of the files of settings.


LogLevel = Literal["debug", "info", "warning", "error"]


class Settings(FileModel, frozen=True):
    """The settings of a user or a site."""

    machine: Annotated[str, doc("machine, by name or file")] = ""
    trials: Annotated[str, doc("folder of the trials")] = ""
    store: Annotated[str, doc("store of results: a file, or a URL of PostgreSQL")] = ""
    log_level: Annotated[LogLevel | None, doc("what goes to log files")] = None
    name: Annotated[str, doc("who makes reports")] = ""
    organisation: Annotated[str, doc("of whoever makes reports")] = ""
    alert: Annotated[str, doc("bash; as --alert of run and resume")] = ""
