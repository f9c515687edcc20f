"""Read what a sink needs to know about a trial from ``trial.json``, in any version of the file."""

from msgspec import Struct
from msgspec.structs import replace

from seatrial.decoding import decoder
from seatrial.file_origin import FileOrigin
from seatrial.hooks import with_fields
from seatrial.machine.schedulers import schedulers
from seatrial.machine.sinks import Sink
from seatrial.trial.folder import TrialFolder


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
