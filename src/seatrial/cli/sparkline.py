"""Shares over time as a row of bars, in characters that the output can show."""

from __future__ import annotations

import sys
from collections.abc import Iterable

BLOCKS = " ▁▂▃▄▅▆▇█"
PLAIN = " .:-=+*#@"  # if the output's encoding has no block characters


def bars(shares: Iterable[float]) -> str:
    """Return a bar for each share from 0 to 1: a blank for 0, the tallest for 1."""
    signs = BLOCKS if _can_show(BLOCKS) else PLAIN
    most = len(signs) - 1
    return "".join(signs[max(0, min(most, round(share * most)))] for share in shares)


def _can_show(text: str) -> bool:
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
