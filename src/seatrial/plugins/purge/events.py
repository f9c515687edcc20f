"""The events of the journal of a purge, which is its audit."""

from __future__ import annotations

from typing import ClassVar

from msgspec import field

from seatrial.journal.events import Event, Whole


class PurgeEvent(Event, frozen=True, kw_only=True, tag="purge"):
    """Something happened to the files of a plan of ``seatrial purge``."""


class PurgeBegun(PurgeEvent, frozen=True, kw_only=True, tag="purge_start"):
    """An act began: ``remove``, ``aside`` (files are moved aside), ``undo`` or ``expire``.
    ``plan``: the SHA-256 of the plan. ``consents``: who agreed. ``paths`` and ``owners``: what it
    is confined to. ``left_out``: owners whose files stay, as their own lists changed since the
    plan. ``until``: when what is moved aside may be removed, in ns since 1970."""

    number: ClassVar[int] = 400
    act: str = field(default="", name="value")
    plan: str = ""
    consents: list[str] = []
    operator: str = field(default="", name="by")
    paths: list[str] = []
    owners: list[int] = []
    left_out: list[int] = []
    until: Whole = 0

    @property
    def by(self) -> str:
        return self.operator


class PurgeBatchBegun(PurgeEvent, frozen=True, kw_only=True, tag="purge_batch_start"):
    """So many files of a batch of the plan are about to be removed, or moved (intent)."""

    number: ClassVar[int] = 401
    batch: Whole = field(default=0, name="value")
    files: Whole = 0


class PurgeBatchEnded(PurgeEvent, frozen=True, kw_only=True, tag="purge_batch_end"):
    """What became of each entry of a batch, in the order of the plan: ``letters`` with their
    number, such as ``4090r5c1e``. r: removed; b: gone as a batch that was killed is done again;
    a: moved aside; x: another file was swapped in and is moved aside; u: put back; o: not put back,
    as a new file has its name; c: changed since the plan, so it stays; g: gone before; k: kept, as
    it is open; e: an error; n: not tried; -: not meant. ``errors``: the system's message by the
    index of the entry. ``folders``: those that became empty and were removed."""

    number: ClassVar[int] = 402
    batch: Whole = field(default=0, name="value")
    letters: str = field(default="", name="text")
    freed: Whole = 0
    errors: dict[str, str] = {}
    folders: list[str] = []


class PurgeEnded(PurgeEvent, frozen=True, kw_only=True, tag="purge_end"):
    """The act is over. ``counts``: entries by their letter; ``freed``: bytes."""

    number: ClassVar[int] = 403
    act: str = field(default="", name="value")
    counts: dict[str, int] = {}
    freed: Whole = 0


class PurgeWarning(PurgeEvent, frozen=True, kw_only=True, tag="purge_warn_start"):
    """A mail to an owner is about to be sent (intent). Without the fact behind it nobody knows
    whether it was."""

    number: ClassVar[int] = 404
    owner: str = field(default="", name="value")
    uid: Whole = 0
    address: str = ""


class PurgeWarned(PurgeEvent, frozen=True, kw_only=True, tag="purge_warn"):
    """An owner was told which files a plan names: ``entries`` of ``size`` bytes on the disk.
    ``how``: by which program, or in a person's words. ``seen``: the time to which the plan knew
    the files, in ns since 1970. ``failed``: why the mail could not be sent; "" if it was."""

    number: ClassVar[int] = 405
    owner: str = field(default="", name="value")
    uid: Whole = 0
    address: str = ""
    entries: Whole = 0
    size: Whole = 0
    how: str = field(default="", name="text")
    seen: Whole = 0
    failed: str = ""
