"""Why a script ended, in its own words: a line of its stderr that begins with ``seatrial: ``.

own_words(run)      # "worker on n003 never came"
"""

from __future__ import annotations

from pathlib import Path

from seatrial.verify.reading import plain, tail

OWN_WORDS = "seatrial: "
STDERR_TAIL = 4096


def own_words(run: Path) -> str:
    """Return what the last such line near the end of a run's stderr says; "" where there is
    none."""
    found = tail(run / "stderr", STDERR_TAIL)
    lines = found.text.splitlines() if found and found.text else []
    said = [line.removeprefix(OWN_WORDS) for line in lines if line.startswith(OWN_WORDS)]
    return plain(said[-1]) if said else ""
