"""Helpers of several parsers."""

from __future__ import annotations

import re

from seatrial.verify.figures import shown


def once(pattern: re.Pattern[str], text: str, what: str) -> re.Match[str]:
    """Return the only match. Raises ValueError that names ``what`` if there is none, or several."""
    found = None
    for match in pattern.finditer(text):
        if found is not None:
            raise ValueError(f"it has more than one {what}; judge one run at a time")
        found = match
    if found is None:
        raise ValueError(f"its {what} is missing, or not whole")
    return found


def end_whole(text: str) -> None:
    """Raise ValueError if no newline ends a text: its last line was cut. For formats without a
    closing line."""
    if text and not text.endswith("\n"):
        raise ValueError(f"its last line is cut: {shown(text[text.rfind(chr(10)) + 1 :])}")
