"""The documents that people gave: are they still what was signed for?

document = given(Path("burn-in.pdf"), plan_folder)     # its name, size and SHA-256
state_of(plan_folder / document.name, document.sha256)  # "as it was", "changed", "not here"
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from seatrial.acceptance.criteria import OverallState
from seatrial.acceptance.evidence_status import EvidenceStatus, state_of
from seatrial.acceptance.status import Status
from seatrial.errors import UsageError
from seatrial.files import open_regular
from seatrial.plan.checklist import ItemResult


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
        why = getattr(error, "strerror", None) or error
        raise UsageError(f"{path}: cannot be read: {why}; name the document's file") from error
    whole = path.absolute()
    home = folder.absolute()
    name = whole.relative_to(home) if whole.is_relative_to(home) else whole
    return GivenDocument(str(name), size, sha256)


def with_documents(found: Status, folder: Path) -> Status:
    """Return a status that says of each item's document whether it is as it was; ``folder`` is the
    plan's."""

    def looked_at(tick: ItemResult | None) -> ItemResult | None:
        if tick is None or not tick.sha256:
            return tick
        return replace(tick, now=state_of(folder / tick.document, tick.sha256))

    items = [replace(item, tick=looked_at(item.tick)) for item in found.items]
    return replace(found, items=items)


def with_evidence(found: Status, evidence: list[EvidenceStatus]) -> Status:
    """Return a status with the documents of its component: what is not decided by runs alone is
    awaited, or undecided where a document is not as it was signed for."""
    found = replace(found, evidence=evidence)
    if found.verdict in ("not met", "undecided"):
        return found
    for state, what in (("undecided", found.unsound), ("awaited", found.awaited)):
        if what:
            verdict: OverallState = "awaited" if state == "awaited" else "undecided"
            return replace(found, verdict=verdict, verdict_words=f"{state}: {'; '.join(what)}")
    return found
