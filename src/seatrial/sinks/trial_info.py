"""Read what a sink needs to know about a trial from ``trial.json``, in any version of the file."""

from __future__ import annotations

from msgspec import Struct

from seatrial.machine.sinks import Sink
from seatrial.trial.folder import TrialFolder


class _Machine(Struct):
    machine: str
    groups: dict[str, str] = {}
    sinks: list[Sink] = []


class TrialInfo(Struct):
    """A trial's tag and machine, the user and host that made it, and whether it is a rehearsal."""

    tag: str
    machine: _Machine
    user: str = ""
    host: str = ""
    rehearsed: bool = False


def about_of(folder: TrialFolder) -> TrialInfo:
    """Return what the record of a trial says. Raises TrialError."""
    return folder.record_as(TrialInfo)
