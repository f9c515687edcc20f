"""The documents that people gave: are they still what was signed for?

document = given(Path("burn-in.pdf"), plan_folder)     # its name, size and SHA-256
with_evidence(status, evidence).verdict                # undecided where one has changed
"""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from seatrial.errors import UsageError
from seatrial.files import open_regular
from seatrial.results.criteria.mix import OverallState
from seatrial.results.evidence import EvidenceStatus, items_of_now
from seatrial.results.status import Status


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


def with_documents(found: Status, folder: Path) -> Status:
    """Return a status that says of each item's document whether it is as it was; ``folder`` is the
    plan's."""
    return replace(found, items=items_of_now(found.items, folder))


def with_evidence(found: Status, evidence: list[EvidenceStatus]) -> Status:
    """Return a status with the documents of its component, and the verdict that follows."""
    found = replace(found, evidence=evidence)
    verdict, words = with_people(found.verdict, found.verdict_words, found.unsound, found.awaited)
    return replace(found, verdict=verdict, verdict_words=words)


def with_people(
    verdict: OverallState, words: str, unsound: Sequence[str], awaited: Sequence[str]
) -> tuple[OverallState, str]:
    """Return the verdict of a component and its words: what is not decided by runs alone is
    awaited, or undecided where a document is not as it was signed for."""
    if verdict in ("not met", "undecided"):
        return verdict, words
    if unsound:
        return "undecided", f"undecided: {'; '.join(unsound)}"
    return ("awaited", f"awaited: {'; '.join(awaited)}") if awaited else (verdict, words)
