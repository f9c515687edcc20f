"""The documents of evidence: which are there, and are they as they were signed for?

evidence_of(component.evidence, records.given, folder)[0].state     # "awaited"
given(Path("burn-in.pdf"), plan_folder)     # the name, size and SHA-256 of what a person gives
"""

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from seatrial.errors import UsageError
from seatrial.execute.plan.component import ItemResult, ItemStatus
from seatrial.files import open_regular
from seatrial.journal.events import EvidenceGiven
from seatrial.model.plan import Evidence
from seatrial.units import count, listed

MAX_NAMED = 5
_NOW = {"changed": "changed since it was signed for", "not here": "is not here"}

DocumentState = Literal["as it was", "changed", "not here"]
EvidenceState = DocumentState | Literal["awaited"]


class EvidenceStatus(Struct, frozen=True, kw_only=True):
    """A document of evidence: as the plan has it, or as a person gave it later."""

    document: str
    #: its path, relative to the plan
    file: str
    sha256: str
    signed_by: str
    signed_on: str
    about: str
    clause: str
    id: str
    #: whether it is there and has the checksum that was signed for
    state: EvidenceState
    #: who gave it later
    user: str = ""
    #: when that was (ns)
    given: int | None = None
    #: how many it replaced
    earlier: int = 0


def state_of(path: Path, sha256: str) -> DocumentState:
    """Return whether a document still has its checksum."""
    try:
        with open_regular(path) as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except (OSError, ValueError):
        return "not here"
    return "as it was" if found == sha256.lower() else "changed"


Look = Callable[[Path, str], DocumentState]
"""How a document is looked at: ``state_of``, or what remembers its answers."""


def evidence_of(
    written: Sequence[Evidence],
    given: Mapping[str, list[EvidenceGiven]],
    folder: Path,
    look: Look = state_of,
) -> list[EvidenceStatus]:
    """Return the documents of a component, each looked at: as the plan has them, or as they were
    given later; ``folder`` is the plan's."""
    return [_evidence(each, given.get(each.document, []), folder, look) for each in written]


def _evidence(
    written: Evidence, given: list[EvidenceGiven], folder: Path, look: Look
) -> EvidenceStatus:
    found = EvidenceStatus(
        document=written.document,
        file=written.document,
        sha256=written.sha256,
        signed_by=written.signed_by,
        signed_on=written.signed_on,
        about=written.about,
        clause=written.clause,
        id=written.id,
        state="awaited",
    )
    if not written.comes_later:
        return replace(found, state=look(folder / written.document, written.sha256))
    if not given:
        return found
    last = given[-1]
    return replace(
        found,
        file=last.file,
        sha256=last.sha256,
        signed_by=", ".join(last.names),
        signed_on=last.on,
        state=look(folder / last.file, last.sha256),
        user=last.by,
        given=last.time,
        earlier=len(given) - 1,
    )


def items_of_now(
    items: Sequence[ItemStatus], folder: Path, look: Look = state_of
) -> list[ItemStatus]:
    """Return items that say of each document whether it is as it was; ``folder`` is the plan's."""

    def looked_at(tick: ItemResult | None) -> ItemResult | None:
        if tick is None or not tick.sha256:
            return tick
        return replace(tick, now=look(folder / tick.document, tick.sha256))

    return [replace(item, tick=looked_at(item.tick)) for item in items]


def awaited_of(items: Sequence[ItemStatus], evidence: Sequence[EvidenceStatus]) -> list[str]:
    """Return what people still have to give: items and documents."""
    names = [item.id for item in items if item.state == "awaited"]
    named = [f"{count(len(names), 'item')} ({listed(names, MAX_NAMED)})"] if names else []
    return named + [each.document for each in evidence if each.state == "awaited"]


def unsound_of(items: Sequence[ItemStatus], evidence: Sequence[EvidenceStatus]) -> list[str]:
    """Return the documents that are not as they were signed for, with their states."""
    found: list[tuple[str, str]] = [(each.document, each.state) for each in evidence]
    found += [(item.tick.document, item.tick.now) for item in items if item.tick]
    return [f"{name} {_NOW[state]}" for name, state in found if state in _NOW]


def state_of_evidence(found: Sequence[EvidenceStatus]) -> str:
    """Return the state of a component that rests on documents alone."""
    states = {each.state for each in found}
    if states & {"changed", "not here"}:
        return "evidence changed"
    return "awaited" if "awaited" in states else "shown by evidence"


def words_of(one: EvidenceStatus) -> str:
    """Return the state of a document, as the plan's people read it."""
    words = {"as it was": "shown by evidence", "changed": "changed since it was signed for"}
    return words.get(one.state, one.state)


class GivenDocument(NamedTuple):
    """A document: its path, relative to the plan's folder where it is below, its bytes and sum."""

    name: str
    size: int
    sha256: str


def given(path: Path, folder: Path) -> GivenDocument:
    """Return a document that a person gives. Raises UsageError where it cannot be read."""
    try:
        with open_regular(path) as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
            size = os.fstat(file.fileno()).st_size
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"{path}: cannot be read: {reason}; name the document's file") from error
    whole = path.absolute()
    home = folder.absolute()
    name = whole.relative_to(home) if whole.is_relative_to(home) else whole
    return GivenDocument(str(name), size, sha256)
