"""What a terminal shows of a trial while it is driven."""

from __future__ import annotations

import sys
from contextlib import closing

import pytest

from seatrial.cli.progress import Progress


def test_nothing_is_said_of_a_trial_before_its_journal_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another driver may have it, and what is left of it is not known yet."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    progress = Progress(quiet=False)
    with closing(progress):
        assert progress._live is None
        progress.on_open(2, 3)
        assert progress._live is not None
        assert progress._status().plain.startswith("2/3 done")
    assert progress._live is None
