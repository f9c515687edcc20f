"""What a sink must know of a trial beside its journal: as much of ``trial.json`` as it needs, so
that it reads every version's."""

from __future__ import annotations

from msgspec import Struct

from seatrial.decoding import DAMAGED, decoder
from seatrial.errors import TrialError
from seatrial.machine.sinks import Sink
from seatrial.trial.folder import TrialFolder


class _Machine(Struct):
    machine: str
    groups: dict[str, str] = {}
    sinks: list[Sink] = []


class TrialInfo(Struct):
    """The trial's tag, who drives it where, on which machine, and whether it is a rehearsal."""

    tag: str
    machine: _Machine
    user: str = ""
    host: str = ""
    rehearsed: bool = False


def about_of(folder: TrialFolder) -> TrialInfo:
    """Read it. Raises TrialError."""
    path = folder.path / "trial.json"
    try:
        return decoder(TrialInfo).decode(path.read_bytes())
    except OSError as error:
        raise TrialError(f"{path}: cannot be read: {error.strerror}") from error
    except DAMAGED as error:
        raise TrialError(f"{path}: is not a trial's record: {error}") from error
