"""Shares over time as a row of bars, in signs that the output can show."""

from __future__ import annotations

import sys
from collections.abc import Iterable

BLOCKS = " ▁▂▃▄▅▆▇█"
PLAIN = " .:-=+*#@"  # where the output's encoding has no blocks


def bars(shares: Iterable[float]) -> str:
    """Shares from 0 to 1, a sign for each: blank for none, the last for all."""
    signs = BLOCKS if _can_show(BLOCKS) else PLAIN
    most = len(signs) - 1
    return "".join(signs[max(0, min(most, round(share * most)))] for share in shares)


def _can_show(text: str) -> bool:
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
