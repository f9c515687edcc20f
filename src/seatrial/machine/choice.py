"""The settings of users and sites: which machine a command is about where its command line names
none, and who is told of alerts.

``--machine`` and SEATRIAL_MACHINE come first, then ``machine:`` in the user's settings
(``~/.config/seatrial/config.yaml``) and in the site's (``/etc/seatrial/config.yaml``), then this
host. A login node is never chosen in silence.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from seatrial.documents import Faults, decode_partly, read
from seatrial.errors import UsageError
from seatrial.file_model import FileModel, doc
from seatrial.machine.detect_slurm import cluster_name
from seatrial.machine.load import LOCAL, machine_file

SITE_CONFIG = Path("/etc/seatrial/config.yaml")


class Settings(FileModel, frozen=True):
    """The settings of a user or a site."""

    machine: Annotated[str, doc("machine, by name or file, where none is named")] = ""
    name: Annotated[str, doc("who makes reports")] = ""
    organisation: Annotated[str, doc("of whoever makes reports")] = ""
    alert: Annotated[str, doc("bash; as --alert of run and resume")] = ""


def default_machine() -> str | None:
    """Return the machine of the user's or the site's settings. Raises InvalidFiles."""
    return setting("machine") or None


def setting(key: Literal["machine", "alert", "name", "organisation"]) -> str:
    """Return a setting of the user, else of the site; "" where neither has it. Raises
    InvalidFiles."""
    return next((str(value) for one in _settings() if (value := getattr(one, key))), "")


def default_alert() -> str:
    """Return the command for alerts of the user's or the site's settings, or "". Raises
    InvalidFiles."""
    return setting("alert")


def _settings() -> Iterator[Settings]:
    """Yield the user's settings, then the site's."""
    for path in (Path.home() / ".config/seatrial/config.yaml", SITE_CONFIG):
        if path.is_file():
            faults = Faults()
            node = read(path, faults)
            found = decode_partly(node, Settings, faults) if node is not None else None
            faults.raise_any()
            if found is not None:
                yield found


def require_chosen(name: str | None, key: str) -> None:
    """Raise UsageError where no machine is named, no file describes this host, and a Slurm answers
    here: this is a login node, where nobody wants to run tests unasked. ``key`` names a machine:
    ``-m``, or the plan's."""
    if name is None and machine_file(None) is None and (cluster := cluster_name()):
        raise UsageError(
            f"a Slurm answers here (cluster {cluster}), and no machine is named: name its file with"
            f" {key} (`seatrial machine {cluster} --detect --scheduler slurm` makes a first one),"
            f" or say {key} {LOCAL} to run on this host itself"
        )
