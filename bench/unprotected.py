"""Seatrial without what keeps a trial through crashes of its host: nothing is synced, and neither
lines of the journal nor outputs get checksums. ``bench/safety_cost.py`` measures it; it is of no
other use.

    python bench/unprotected.py run suite
"""

from __future__ import annotations

import os
from unittest.mock import patch

import seatrial.files
from seatrial.cli import main
from seatrial.execute import run_collector
from seatrial.journal import journal


def _nothing(*arguments: object) -> None:
    pass


if __name__ == "__main__":
    with (
        patch.object(os, "fsync", _nothing),
        patch.object(os, "fdatasync", _nothing),
        patch.object(seatrial.files, "sync_folder", _nothing),
        patch.object(journal, "sync_files", _nothing),
        patch.object(journal, "seal", lambda lines, seed: (bytes(lines), seed)),
        patch.object(run_collector, "checksums", lambda folder, sizes: {}),
    ):
        main()
