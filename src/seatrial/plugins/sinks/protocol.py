"""The interface of the systems that events are sent to.

pieces = target.pieces(event, number)        # a request consists of some pieces
reply = target.send(pieces)                  # failures of the other side do not raise
"""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from seatrial.execute.trial_folder import TrialFolder
from seatrial.files import FileOrigin
from seatrial.hooks import with_fields
from seatrial.journal.encoding import encode
from seatrial.journal.events import Event
from seatrial.model.file_model import decoder
from seatrial.model.schedulers import schedulers
from seatrial.plugins.sinks.keys import Sink

BEGINNING = b'{"seq":'  # of a record

CaseName = Callable[[str], str]  # the name of a case by its id, "" if it is not known
Fate = Literal["taken", "again", "smaller"]


class Reply(NamedTuple):
    """What became of a request. ``fate``: "taken", "again" (send it again after ``wait`` seconds or
    more) or "smaller" (send it in halves; a single piece is refused). ``lost``: how many pieces of
    a request that was taken were refused. ``reason`` is for people."""

    fate: Fate
    reason: str = ""
    lost: int = 0
    wait: float = 0.0


class SinkTarget:
    """A system that events are sent to: as JSON records, unless it makes other ``pieces``.
    ``shown``: its host or file, without secrets. ``folds``: the pieces of an event depend on the
    events before it, so that it must be passed all of them."""

    shown: str
    folds = False

    def pieces(self, event: Event, number: int) -> list[bytes]:
        """Return what is sent for an event, the ``number``-th of its journal."""
        return [record(event, number)]

    def send(self, pieces: Sequence[bytes]) -> Reply:
        """Send pieces in one request; return what became of it."""
        raise NotImplementedError

    def close(self) -> None:
        pass


def record(event: Event, number: int) -> bytes:
    """Return an event's record in the journal as JSON, with its number as ``seq``."""
    return BEGINNING + b"%d," % number + encode(event)[1:]


# ---- trial info ----------------------------------------------------------------------------------
#
# Read what a sink needs to know about a trial from ``trial.json``, in any version of the file.


class _Batch(Struct, frozen=True):
    account: str = ""


@with_fields({name: (_Batch, _Batch()) for name in schedulers()})
class _Machine(Struct):
    machine: str
    groups: dict[str, str] = {}
    sinks: list[Sink] = []

    @property
    def account(self) -> str:
        """The account of its jobs, if they have one: it has one scheduler."""
        accounts = (getattr(self, name).account for name in schedulers())
        return next(filter(None, accounts), "")


class _Run(Struct, frozen=True):
    account: str | None = None


class _Test(Struct, frozen=True):
    run: _Run = _Run()


class TrialInfo(Struct):
    """A trial's tag and machine, the user and host that made it, whether it is a rehearsal, its
    tests by name, and its folder."""

    tag: str
    machine: _Machine
    user: str = ""
    host: str = ""
    rehearsed: bool = False
    tests: dict[str, _Test] = {}
    path: str = ""


def owned_about_of(folder: TrialFolder) -> tuple[TrialInfo, FileOrigin]:
    """Return what the record of a trial says, and who can have written it. Raises TrialError."""
    about, origin = folder.owned_record_as(decoder(TrialInfo).decode)
    return replace(about, path=str(folder.path)), origin


def about_of(folder: TrialFolder) -> TrialInfo:
    """Return what the record of a trial says. Raises TrialError."""
    return replace(folder.record_as(TrialInfo), path=str(folder.path))
