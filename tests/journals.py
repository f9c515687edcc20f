"""Journals as tests change them."""

from __future__ import annotations

from pathlib import Path

from seatrial.journal.encoding import unsealed
from seatrial.journal.journal import path_of


def without_checksums(journal: Path) -> bytes:
    """Return what a journal holds as version 0.1 wrote it, so that its lines can be changed and
    moved. Removes its mark."""
    path_of(journal).unlink(missing_ok=True)
    return b"\n".join(map(unsealed, journal.read_bytes().split(b"\n")))
